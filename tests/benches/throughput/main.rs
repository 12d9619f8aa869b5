//! Measures and prints; asserts nothing. `cargo bench -p geoclaim-tests --bench throughput [-- extents discard memory publish sinks]`
//!
//! Rates stand beside their limit in the same run, alternated, as medians: two cores that others share are noisy, and
//! only the ratio says something.

mod discard;
mod extents;
mod memory;
mod publish;
mod sinks;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for (name, print) in [
        ("extents", extents::print as fn()),
        ("discard", discard::print),
        ("memory", memory::print),
        ("publish", publish::print),
        ("sinks", sinks::print),
    ] {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            print();
        }
    }
}
