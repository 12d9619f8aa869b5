//! A broker's configuration files and command line.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::ports;

/// Sixteen bytes in base64url, as Kafka writes a cluster's id.
pub(super) const CLUSTER_ID: &str = "Z2VvY2xhaW0tdGVzdHMtMQ";

/// Quick to start rather than quick at its best, and small. No file outside the broker's folder.
const JVM: [&str; 6] =
    ["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true"];

/// A broker that was killed is let in again only once it has been silent for the time set here, as
/// shipped nine seconds.
const SETTINGS: &str = "\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
auto.create.topics.enable=false
num.partitions=4
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=8388608
";

const LOGGING: &str = "\
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c{1}: %m%n
";

/// Writes both configuration files and returns the address that clients use.
pub(super) fn write_settings(folder: &Path, settings: &[(&str, &str)]) -> io::Result<String> {
    let ports = ports::free(2)?;
    let (broker, controller) = (ports[0], ports[1]);
    let mut text = SETTINGS.to_owned();
    text += &format!("listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n");
    text += &format!("advertised.listeners=PLAINTEXT://127.0.0.1:{broker}\n");
    text += &format!("controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n");
    text += &format!("log.dirs={}\n", folder.join("data").display());
    for (key, value) in settings {
        text += &format!("{key}={value}\n"); // of two lines with one key the later counts
    }
    fs::write(folder.join("server.properties"), text)?;
    fs::write(folder.join("log4j2.properties"), LOGGING)?;
    Ok(format!("127.0.0.1:{broker}"))
}

/// Begins a command that runs one of the classes in the jars; its files stay in `folder`.
pub(super) fn java_command(java: &Path, jars: &Path, folder: &Path) -> Command {
    let mut command = Command::new(java);
    command.args(JVM).current_dir(folder);
    command.arg(format!("-Djava.io.tmpdir={}", folder.display()));
    command.arg(format!("-Dlog4j2.configurationFile={}", folder.join("log4j2.properties").display()));
    command.arg("-cp").arg(jars.join("*"));
    command
}
