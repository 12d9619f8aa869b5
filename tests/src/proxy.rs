//! A proxy on loopback that stands between a client and a real component and does it harm.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// What the proxy does with what a client sends.
#[derive(Clone, Copy)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Answers every request of HTTP with a 503.
    Unavailable,
    /// Passes everything on until the client sends what this finds; then the connection is cut once the other side has
    /// begun to answer, and nothing of the answer comes through.
    CutAnswerTo(fn(&[u8]) -> bool),
}

const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Listens on a port of its own until the process ends.
#[derive(Clone)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    target: SocketAddr,
    mode: Mutex<Mode>,
    connections: Mutex<HashMap<u64, [TcpStream; 2]>>,
    number: AtomicU64,
    cuts: AtomicU64,
}

impl Proxy {
    /// Stands before a port of this machine.
    ///
    /// # Errors
    /// There is no port for it.
    pub fn before(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        Self::listen(listener, port)
    }

    /// Stands before a port, on a port that is known beforehand.
    ///
    /// # Errors
    /// The port is taken.
    pub fn before_on(own: u16, port: u16) -> io::Result<Self> {
        Self::listen(TcpListener::bind(("127.0.0.1", own))?, port)
    }

    fn listen(listener: TcpListener, port: u16) -> io::Result<Self> {
        let state = State {
            target: SocketAddr::from(([127, 0, 0, 1], port)),
            mode: Mutex::new(Mode::Pass),
            connections: Mutex::default(),
            number: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        };
        let proxy = Self { port: listener.local_addr()?.port(), state: Arc::new(state) };
        let state = Arc::clone(&proxy.state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&state);
                thread::spawn(move || drop(state.serve(client)));
            }
        });
        Ok(proxy)
    }

    /// Returns the port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets what it does from now on. Connections that are open are closed unless everything passes.
    pub fn set(&self, mode: Mode) {
        *lock(&self.state.mode) = mode;
        if matches!(mode, Mode::Unavailable) {
            let open: Vec<_> = lock(&self.state.connections).drain().collect();
            open.iter().flat_map(|(_, ends)| ends).for_each(|end| drop(end.shutdown(Shutdown::Both)));
        }
    }

    /// Returns how many answers it has cut.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    fn serve(self: Arc<Self>, mut client: TcpStream) -> io::Result<()> {
        if matches!(self.mode(), Mode::Unavailable) {
            let mut request = [0; 4096];
            let _ = client.read(&mut request)?;
            client.write_all(UNAVAILABLE)?;
            return client.shutdown(Shutdown::Both);
        }
        let server = TcpStream::connect(self.target)?;
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        lock(&self.connections).insert(number, [client.try_clone()?, server.try_clone()?]);
        let is_cut = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (state, cut) = (Arc::clone(&self), Arc::clone(&is_cut));
        let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
        let up = thread::spawn(move || {
            let look = |sent: &[u8]| {
                if let Mode::CutAnswerTo(finds) = state.mode()
                    && finds(sent)
                {
                    cut.store(true, Ordering::SeqCst);
                }
                true
            };
            pass(client_too, server_too, look)
        });
        let state = Arc::clone(&self);
        let down = pass(server, client, move |_| {
            let is_cut = is_cut.swap(false, Ordering::SeqCst);
            state.cuts.fetch_add(u64::from(is_cut), Ordering::SeqCst);
            !is_cut
        });
        let _ = up.join();
        lock(&self.connections).remove(&number);
        down
    }
}

/// Passes bytes on while `look`, which sees them first, says so; then both ends are closed.
fn pass(mut from: TcpStream, mut to: TcpStream, look: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut copy = || -> io::Result<()> {
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 || !look(&buffer[..count]) {
                return Ok(());
            }
            to.write_all(&buffer[..count])?;
        }
    };
    let copied = copy();
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    copied
}
