//! Accepting connections, and the end of a server.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::config::{Config, ServerError};
use super::connection;
use super::export::Export;
use super::registry::Registry;
use super::socket::{Address, Listening};
use super::tls::TlsPolicy;
use crate::export::Directory;

/// How often a listener looks whether the server drains.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// How long a listener rests when the system has no descriptor or thread left.
const REST: Duration = Duration::from_millis(50);

/// A server that listens. Dropping it ends its connections without waiting for them.
#[derive(Debug)]
pub struct Server {
    registry: Arc<Registry>,
    addresses: Vec<Address>,
    listeners: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on addresses and serves what `directory` gives out.
    ///
    /// # Errors
    /// Which address cannot be listened on, or may not be without TLS.
    pub fn start<D>(
        addresses: &[Address],
        config: Config,
        directory: Arc<D>,
    ) -> Result<Self, ServerError>
    where
        D: Directory<Export = Arc<dyn Export>> + Send + Sync + 'static,
    {
        let mut bound = Vec::new();
        for address in addresses {
            let exposed = matches!(address, Address::Tcp(tcp) if !tcp.ip().is_loopback());
            if exposed && !config.insecure && !matches!(config.tls, TlsPolicy::Required(_)) {
                return Err(ServerError::Exposed(address.to_string()));
            }
            let failed = |source| ServerError::Listen {
                address: address.to_string(),
                source,
            };
            let listening = Listening::bind(address).map_err(failed)?;
            let actual = listening.address().map_err(failed)?;
            bound.push((listening, actual));
        }
        let config = Arc::new(config);
        let mut server = Self {
            registry: Arc::new(Registry::default()),
            addresses: Vec::new(),
            listeners: Mutex::default(),
        };
        for (listening, address) in bound {
            let registry = server.registry.clone();
            let (config, directory) = (config.clone(), directory.clone());
            let listener = std::thread::Builder::new()
                .name("nbd listener".to_owned())
                .spawn(move || accept(&listening, &config, &registry, &directory))
                .map_err(ServerError::Thread)?;
            server.addresses.push(address);
            server.listeners.get_mut().push(listener);
        }
        Ok(server)
    }

    /// The addresses that are listened on, with the ports that were free.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Connections that use an export, and connections that negotiate.
    pub fn connections(&self) -> (usize, usize) {
        self.registry.count()
    }

    /// Ends every connection; others may come.
    pub fn disconnect(&self) {
        self.registry.abandon();
    }

    /// Lets nobody in, has what was asked for answered, and closes every connection; those that are
    /// left after `time` are cut. Whether all ended by themselves.
    pub fn drain(&self, time: Duration) -> bool {
        self.registry.drain();
        self.join();
        self.registry.wait_empty(time)
    }

    fn join(&self) {
        for listener in self.listeners.lock().drain(..) {
            // A listener does not panic.
            let _ = listener.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.registry.drain();
        self.registry.abandon();
        self.join();
    }
}

fn accept<D>(
    listening: &Listening,
    config: &Arc<Config>,
    registry: &Arc<Registry>,
    directory: &Arc<D>,
) where
    D: Directory<Export = Arc<dyn Export>> + Send + Sync + 'static,
{
    while !registry.is_draining() {
        let mut waiting = [PollFd::new(listening, PollFlags::IN)];
        if !matches!(poll(&mut waiting, Some(&LOOK)), Ok(count) if count > 0) {
            continue;
        }
        match admit(listening, config, registry, directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(REST),
        }
    }
}

/// Takes in one connection, with a thread of its own. One that finds no place is closed.
fn admit<D>(
    listening: &Listening,
    config: &Arc<Config>,
    registry: &Arc<Registry>,
    directory: &Arc<D>,
) -> io::Result<()>
where
    D: Directory<Export = Arc<dyn Export>> + Send + Sync + 'static,
{
    let socket = listening.accept()?;
    let handle = socket.try_clone()?;
    let Some(number) = registry.enter(handle, config) else {
        return Ok(());
    };
    let place = ConnectionPlace {
        registry: registry.clone(),
        number,
    };
    let (config, directory) = (config.clone(), directory.clone());
    std::thread::Builder::new()
        .name("nbd connection".to_owned())
        .spawn(move || {
            let registry = place.registry.clone();
            connection::serve(socket, place.number, &config, &registry, &*directory);
        })
        .map(|_| ())
}

/// The place of a connection, given back however it ends.
struct ConnectionPlace {
    registry: Arc<Registry>,
    number: u64,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.registry.leave(self.number);
    }
}
