//! `serve`: a volume over NBD, until a signal ends it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flashlore_medium::FileMedium;
use flashlore_nbd::server::{Address, Config, Server, TlsFiles, TlsPolicy};
use flashlore_serve::Home;
use flashlore_serve::exports::Exports;
use flashlore_sim::config::{Nanos, Share};
use flashlore_volume::disk::filters::{Delay, Fault, Filtered};
use flashlore_volume::disk::{BlockDevice, Disk};

use super::running::Running;
use crate::cli::ServeArgs;
use crate::error::CliError;
use crate::output::tell;

fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}

/// A path has a slash or no port.
fn address(text: &str) -> Result<Address, CliError> {
    if text.contains('/') || !text.contains(':') {
        return Ok(Address::Unix(PathBuf::from(text)));
    }
    let resolved: Option<SocketAddr> = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    resolved.map(Address::Tcp).ok_or_else(|| {
        CliError::Usage(format!(
            "expected HOST:PORT or a path of a Unix socket, found {text:?}"
        ))
    })
}

fn tls(args: &ServeArgs) -> Result<TlsPolicy, CliError> {
    let (Some(certificate), Some(key)) = (&args.tls_certificate, &args.tls_key) else {
        return Ok(TlsPolicy::Absent);
    };
    let files = TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_authority: args.tls_clients.clone(),
    };
    let config = files
        .load()
        .map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(TlsPolicy::Required(config))
}

/// The volume with the filters that were asked for around it.
fn filtered(args: &ServeArgs, disk: Arc<Disk<FileMedium>>) -> Arc<dyn BlockDevice> {
    let mut device: Arc<dyn BlockDevice> = disk;
    let wait = |nanos: Option<Nanos>| nanos.map_or(Duration::ZERO, duration);
    let delay = Delay {
        reads: wait(args.delay_reads),
        writes: wait(args.delay_writes),
        flushes: wait(args.delay_flushes),
    };
    if args.delay_reads.is_some() || args.delay_writes.is_some() || args.delay_flushes.is_some() {
        device = Arc::new(Filtered::new(device, delay));
    }
    let faults = [args.fail_reads, args.fail_writes, args.fail_flushes];
    if faults.iter().any(Option::is_some) {
        let [reads, writes, flushes] = faults.map(|share| share.map_or(0.0, Share::get));
        let fault = Fault::new(reads, writes, flushes, args.seed);
        device = Arc::new(Filtered::new(device, fault));
    }
    device
}

fn listen(args: &ServeArgs, home: &Home, exports: Exports) -> Result<Server, CliError> {
    let mut addresses = Vec::new();
    for text in &args.listen {
        addresses.push(address(text)?);
    }
    if addresses.is_empty() {
        addresses.push(Address::Unix(home.nbd()));
    }
    let config = Config {
        connections: args.connections,
        tls: tls(args)?,
        insecure: args.insecure,
        ..Config::default()
    };
    Server::start(&addresses, config, Arc::new(exports)).map_err(|error| match error {
        exposed @ flashlore_nbd::server::ServerError::Exposed(_) => {
            CliError::Usage(exposed.to_string())
        }
        other => CliError::Differs(other.to_string()),
    })
}

/// How a client names the server.
fn uri(address: &Address, name: &str, tls: bool) -> String {
    let scheme = if tls { "nbds" } else { "nbd" };
    match address {
        Address::Unix(path) => format!("{scheme}+unix:///{name}?socket={}", path.display()),
        Address::Tcp(address) => format!("{scheme}://{address}/{name}"),
    }
}

/// Serves a volume until SIGTERM or SIGINT.
pub fn serve(args: &ServeArgs) -> Result<(), CliError> {
    let mut running = Running::open(&args.volume, args.memory)?;
    let service = Arc::clone(running.service());
    let live = filtered(args, Arc::clone(service.disk()));
    let exports = Exports::new(Arc::clone(&service), live, args.read_only);
    let server = Arc::new(listen(args, service.home(), exports)?);
    let dropper = Arc::downgrade(&server);
    service.clients().serve(Box::new(move || {
        if let Some(server) = dropper.upgrade() {
            server.disconnect();
        }
    }));
    let control = running.control()?;
    for address in server.addresses() {
        let encrypted = args.tls_certificate.is_some();
        let name = service.home().name();
        tell(&format!("serving {}", uri(address, &name, encrypted)));
    }
    // Nothing else ends it.
    running.signalled();
    tell("draining");
    drop(control);
    let drained = server.drain(duration(args.drain));
    running.close(match drained {
        true => None,
        false => Some("some clients did not take their answers and were"),
    })
}
