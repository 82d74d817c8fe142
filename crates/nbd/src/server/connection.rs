//! One connection: the negotiation, then the workers that share it.
//!
//! One worker reads at a time. It hands reading on before it carries a request out, so requests run
//! side by side and their replies leave in the order of their ends. A short request without effects
//! that has come alone is answered before reading goes on: that spares a change of threads.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::config::Config;
use super::export::Export;
use super::input::{Input, Job, message_time};
use super::jobs::Desk;
use super::registry::{Registry, Share};
use super::socket::Socket;
use super::tls::TlsPolicy;
use super::transport::Transport;
use crate::export::Directory;
use crate::handshake::{HandshakeEvent, ServerHandshake, Session, Tls};
use crate::transmission::{Command, Replies, RequestReader, Rules};

/// Longest request that its reader may answer itself, in bytes.
const INLINE_BYTES: u32 = 64 << 10;

type Negotiated = (Transport, Session<Arc<dyn Export>>, Vec<u8>);

pub(super) fn serve<D>(
    socket: Socket,
    number: u64,
    config: &Config,
    registry: &Registry,
    directory: &D,
) where
    D: Directory<Export = Arc<dyn Export>>,
{
    // Whoever cannot negotiate is gone, and nobody is left to tell.
    let has_place = || registry.serve(number, config);
    if let Ok(Some((transport, session, early))) = negotiate(socket, config, directory, has_place) {
        transmit(&transport, &session, &early, config, registry);
        transport.close();
    }
}

/// The negotiation; nothing if the client went away or there is no place for it. Gives also what
/// came behind it.
fn negotiate<D>(
    socket: Socket,
    config: &Config,
    directory: &D,
    has_place: impl Fn() -> bool,
) -> io::Result<Option<Negotiated>>
where
    D: Directory<Export = Arc<dyn Export>>,
{
    let deadline = Instant::now() + config.negotiation;
    let (policy, tls) = match &config.tls {
        TlsPolicy::Absent => (Tls::Absent, None),
        TlsPolicy::Offered(tls) => (Tls::Offered, Some(tls)),
        TlsPolicy::Required(tls) => (Tls::Required, Some(tls)),
    };
    let mut transport = Transport::plain(socket)?;
    let mut out = Vec::new();
    let mut machine = ServerHandshake::new(policy, config.limits, &mut out);
    let mut buffer = [0; 4096];
    let mut input: &[u8] = &[];
    loop {
        let result = machine.receive(input, directory, &mut out);
        // Before the answer that lets the client in: whoever has it has a place.
        let event = result.as_ref().ok().and_then(|it| it.event.as_ref());
        if matches!(event, Some(HandshakeEvent::Transmission(_))) && !has_place() {
            transport.close();
            return Ok(None);
        }
        // The answer goes out also when it is the last one.
        transport.write_all(&out, deadline)?;
        out.clear();
        let received = result.map_err(io::Error::other)?;
        input = &input[received.consumed..];
        match received.event {
            Some(HandshakeEvent::Transmission(session)) => {
                return Ok(Some((transport, *session, input.to_vec())));
            }
            Some(HandshakeEvent::Aborted) => {
                transport.close();
                return Ok(None);
            }
            Some(HandshakeEvent::StartTls) => {
                let Some(tls) = tls else {
                    return Ok(None);
                };
                transport = transport.start_tls(tls.clone(), input, deadline)?;
                input = &[];
            }
            None if received.consumed > 0 => {}
            None => {
                let count = transport.read_before(&mut buffer, deadline)?;
                if count == 0 {
                    return Ok(None);
                }
                input = &buffer[..count];
            }
        }
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// What the workers of a connection share.
pub(super) struct Shared<'a> {
    pub(super) transport: &'a Transport,
    pub(super) config: &'a Config,
    registry: &'a Registry,
    share: Share<'a>,
    pub(super) desk: Desk<'a>,
    input: Mutex<Input>,
    /// Held while a reply is sent.
    sending: Mutex<()>,
}

fn transmit(
    transport: &Transport,
    session: &Session<Arc<dyn Export>>,
    early: &[u8],
    config: &Config,
    registry: &Registry,
) {
    let reader = RequestReader::new(Rules::new(session, &config.limits), &config.limits);
    let shared = Shared {
        transport,
        config,
        registry,
        share: registry.share(config),
        desk: Desk {
            export: &*session.export,
            replies: Replies::new(session.structured),
            contexts: &session.contexts,
        },
        input: Mutex::new(Input::new(reader, early)),
        sending: Mutex::new(()),
    };
    std::thread::scope(|scope| {
        for _ in 1..config.workers {
            let worker = std::thread::Builder::new().name("nbd worker".to_owned());
            // Where there are no threads to be had, fewer workers do.
            let _ = worker.spawn_scoped(scope, || shared.work());
        }
        shared.work();
    });
}

impl Shared<'_> {
    fn lock_input(&self) -> MutexGuard<'_, Input> {
        self.input.lock()
    }

    fn work(&self) {
        loop {
            let mut input = self.lock_input();
            let Some(job) = input.next(self.transport, self.config, self.registry, &self.share)
            else {
                return;
            };
            let sent = if let Job::Long(request) = &job {
                self.carry_out_long(request, input)
            } else if is_quick(&job) && input.is_drained() {
                let sent = self.send(&self.desk.answer(&job));
                drop(input);
                sent
            } else {
                drop(input);
                self.send(&self.desk.answer(&job))
            };
            drop(job);
            if sent.is_err() {
                // The client is gone or does not listen; whoever reads finds that out too.
                self.transport.abandon();
                self.lock_input().end();
                return;
            }
        }
    }

    pub(super) fn lock_sending(&self) -> MutexGuard<'_, ()> {
        self.sending.lock()
    }

    /// Sends a reply. The time it may take begins when those before it are gone.
    pub(super) fn send(&self, reply: &[u8]) -> io::Result<()> {
        let _sending = self.lock_sending();
        let deadline = Instant::now() + message_time(self.config, reply.len());
        self.transport.write_all(reply, deadline)
    }

    /// Sends a part of a reply.
    pub(super) fn send_before(&self, part: &[u8], deadline: Instant) -> io::Result<()> {
        let _sending = self.lock_sending();
        self.transport.write_all(part, deadline)
    }
}

/// Whether a job neither changes anything nor takes long.
fn is_quick(job: &Job<'_>) -> bool {
    match job {
        Job::Refused(_) => true,
        Job::Long(_) => false,
        Job::Request { request, .. } => {
            request.command == Command::Read && request.length <= INLINE_BYTES
        }
    }
}
