//! `serve` and `record`: a volume over NBD, until a signal ends it; with a recording of what clients do, or without.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flashlore_nbd::server::{Address, Config, Server, ServerError, TlsFiles, TlsPolicy};
use flashlore_serve::clock::even;
use flashlore_serve::exports::Exports;
use flashlore_serve::metrics::Metrics;
use flashlore_serve::recording::{Options, Recording};
use flashlore_serve::{Home, Live};
use flashlore_sim::config::{Nanos, Share};
use flashlore_volume::disk::BlockDevice;
use flashlore_volume::disk::filters::{Count, Delay, Fault, Filtered, Recorded};

use super::running::{How, Running};
use super::{clocks, failed};
use crate::cli::{FilterArgs, RecordArgs, ServeArgs, ServingArgs};
use crate::error::CliError;
use crate::output::tell;

fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos.0)
}

/// A path has a slash or no port.
fn address(text: &str) -> Result<Address, CliError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CliError::Usage(format!(
            "--listen {text}: expected HOST:PORT, such as 127.0.0.1:10809, or a path of a Unix socket, such as ./{text}"
        )));
    }
    if text.contains('/') || !(text.contains(':') || text.is_empty()) {
        return Ok(Address::Unix(PathBuf::from(text)));
    }
    let resolved: Option<SocketAddr> = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    resolved.map(Address::Tcp).ok_or_else(|| {
        CliError::Usage(format!(
            "expected HOST:PORT or a path of a Unix socket, found {text:?}"
        ))
    })
}

/// Where metrics are answered: a port alone is one of this machine.
fn metrics_address(text: &str, insecure: bool) -> Result<SocketAddr, CliError> {
    let local = || {
        Some(SocketAddr::from((
            [127, 0, 0, 1],
            text.parse::<u16>().ok()?,
        )))
    };
    let resolved = || text.to_socket_addrs().ok().and_then(|mut all| all.next());
    let address = local().or_else(resolved).ok_or_else(|| {
        CliError::Usage(format!(
            "--metrics: expected HOST:PORT or a port, found {text:?}"
        ))
    })?;
    match insecure || address.ip().is_loopback() {
        true => Ok(address),
        false => Err(CliError::Usage(format!(
            "--metrics: {address} can be reached from other machines, and metrics are not encrypted: \
             allow it with --insecure"
        ))),
    }
}

fn tls(args: &ServingArgs) -> Result<TlsPolicy, CliError> {
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

/// A disk with the filters that were asked for around it.
fn filtered(args: &FilterArgs, mut device: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
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

fn listen(args: &ServingArgs, home: &Home, exports: Exports) -> Result<Server, CliError> {
    let mut addresses = Vec::new();
    for text in &args.listen {
        addresses.push(address(text)?);
    }
    if addresses.is_empty() {
        addresses.push(home.nbd().map_err(failed(&args.volume))?);
    }
    let config = Config {
        connections: args.connections.get(),
        tls: tls(args)?,
        insecure: args.insecure,
        ..Config::default()
    };
    Server::start(&addresses, config, Arc::new(exports)).map_err(|error| match error {
        exposed @ ServerError::Exposed(_) => {
            CliError::Usage(exposed.to_string())
        }
        ServerError::Listen { address, source }
            if source.kind() == io::ErrorKind::ReadOnlyFilesystem =>
        {
            CliError::Differs(format!(
                "cannot listen on {address}: its file system is read-only: listen somewhere else, with --listen"
            ))
        }
        other => CliError::Differs(other.to_string()),
    })
}

/// Bytes as a part of a URI.
fn escaped(bytes: &[u8]) -> String {
    let one = |&byte: &u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

/// How a client names the server.
fn uri(address: &Address, name: &str, tls: bool) -> String {
    let scheme = if tls { "nbds" } else { "nbd" };
    let name = escaped(name.as_bytes());
    match address {
        Address::Unix(path) | Address::Within(_, path) => {
            let path = escaped(path.as_os_str().as_bytes());
            format!("{scheme}+unix:///{name}?socket={path}")
        }
        Address::Tcp(address) => format!("{scheme}://{address}/{name}"),
    }
}

/// Serves a volume until SIGTERM or SIGINT.
pub fn serve(args: &ServeArgs) -> Result<(), CliError> {
    run(&args.serving, None)
}

/// Serves a volume until SIGTERM or SIGINT and writes a trace of what clients do.
pub fn record(args: &RecordArgs) -> Result<(), CliError> {
    let options = Options {
        trace: args.trace.clone(),
        pages: args.content.clone(),
        most_values: u32::try_from(args.most_values.0).unwrap_or(u32::MAX),
    };
    if args.content.as_ref() == Some(&args.trace) {
        return Err(CliError::Usage(format!(
            "the trace and its pages cannot both be {}",
            args.trace.display()
        )));
    }
    run(&args.serving, Some(options))
}

fn start_recording(options: Options) -> Result<Arc<Recording>, CliError> {
    let started = Recording::start(options, even(clocks()), Box::new(tell));
    let recording = started.map_err(CliError::Recording)?;
    if let Some(expected) = recording.pages_expected_at() {
        tell(&format!(
            "compare will look for the pages in {}: move them there",
            expected.display()
        ));
    }
    Ok(Arc::new(recording))
}

/// Completes the files of a recording and says what is in them.
fn finish(recording: &Recording) -> Result<(), CliError> {
    let finished = recording.finish();
    let report = finished.map_err(CliError::Recording)?;
    tell(&format!(
        "recorded {} requests with {} distinct pages in {}",
        report.records,
        report.values,
        recording.trace().display()
    ));
    if report.failed > 0 {
        tell(&format!(
            "{} requests failed and are not in it",
            report.failed
        ));
    }
    if report.unfinished > 0 {
        tell(&format!(
            "{} requests had not ended and are not in it",
            report.unfinished
        ));
    }
    match report.missed {
        0 => Ok(()),
        missed => Err(CliError::Differs(format!(
            "{}: it ends before {missed} requests that were answered",
            recording.trace().display()
        ))),
    }
}

/// Puts something around each disk.
fn around(lives: &mut [Live], put: impl Fn(Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice>) {
    for live in lives {
        live.device = put(Arc::clone(&live.device));
    }
}

fn run(args: &ServingArgs, recorded: Option<Options>) -> Result<(), CliError> {
    let how = How::of(args.slow_alone);
    let read_only = args.read_only || how.is_read_only();
    let mut running = Running::open(&args.memory.of(&args.volume), how, read_only)?;
    let service = Arc::clone(running.service());
    let mut lives = service.lives();
    around(&mut lives, |device| filtered(&args.filters, device));
    if recorded.is_some() && lives.len() > 1 {
        return Err(CliError::Usage(format!(
            "{}: a recording is of one disk, and this array has {} machines",
            args.volume.directory.display(),
            lives.len()
        )));
    }
    let recording = recorded.map(start_recording).transpose()?;
    if let Some(recording) = &recording {
        around(&mut lives, |device| {
            Arc::new(Recorded::new(device, Arc::clone(recording)))
        });
    }
    let mut metrics = None;
    if let Some(text) = &args.metrics {
        let address = metrics_address(text, args.insecure)?;
        let count = Count::default();
        around(&mut lives, |device| {
            Arc::new(Filtered::new(device, count.clone()))
        });
        let answers = Metrics::new(Arc::clone(&service), count, read_only);
        metrics = Some(answers.listen(address).map_err(failed(&args.volume))?);
    }
    let names: Vec<String> = lives.iter().map(|live| live.name.clone()).collect();
    let exports = Exports::new(Arc::clone(&service), lives, read_only);
    let server = Arc::new(listen(args, service.home(), exports)?);
    let dropper = Arc::downgrade(&server);
    service.clients().serve(Box::new(move || {
        if let Some(server) = dropper.upgrade() {
            server.disconnect();
        }
    }));
    let control = running.control()?;
    if let Some(metrics) = &metrics {
        let at = metrics.address();
        tell(&format!(
            "metrics at http://{at}/metrics, a live page at http://{at}/"
        ));
    }
    for address in server.addresses() {
        let encrypted = args.tls_certificate.is_some();
        for name in &names {
            tell(&format!("serving {}", uri(address, name, encrypted)));
        }
    }
    // Nothing else ends it.
    running.signalled();
    tell("draining");
    drop(control);
    let drained = server.drain(duration(args.drain));
    let finished = recording.map_or(Ok(()), |recording| finish(&recording));
    drop(metrics);
    let closed = running.close(match drained {
        true => None,
        false => Some("some clients did not take their answers and were"),
    });
    closed.and(finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_what_has_odd_letters() {
        let address = Address::Unix(PathBuf::from("a b?/c&d.sock"));
        let expected = "nbd+unix:///a%20b%3F?socket=a%20b%3F/c%26d.sock";
        assert_eq!(uri(&address, "a b?", false), expected);
        let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 10809)));
        assert_eq!(
            uri(&address, "\u{fc}", true),
            "nbds://127.0.0.1:10809/%C3%BC"
        );
    }
}
