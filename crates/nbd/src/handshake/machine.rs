//! The state machine of the negotiation: greeting, client flags, options one after the other.
//!
//! An option's data are held only up to a limit and only as far as they have come. Before TLS, where
//! it is required, nothing is answered but STARTTLS and ABORT; what was agreed before TLS is forgotten
//! with it, and no byte behind STARTTLS is taken as plain text.

use super::answers::reply;
use super::session::{Context, Session};
use crate::bytes::{Fields, Gather};
use crate::error::ProtocolError;
use crate::export::Directory;
use crate::limits::Limits;
use crate::wire::{
    MAGIC, OPTION_HEADER_BYTES, OPTION_MAGIC, handshake_flags, option, option_reply,
};

/// Whether the connection may or must be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// The server cannot.
    Absent,
    /// The client may ask for it.
    Offered,
    /// Nothing is told without it.
    Required,
}

/// What a negotiation came to.
#[derive(Debug, PartialEq, Eq)]
pub enum HandshakeEvent<E> {
    /// The replies so far go out in plain text; then TLS begins with the first byte that was not
    /// taken. What it decrypts is given to the same machine.
    StartTls,
    /// The negotiation is over, transmission begins with the first byte that was not taken.
    Transmission(Box<Session<E>>),
    /// The client went away with ABORT. The connection is closed.
    Aborted,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Received<E> {
    /// Bytes taken from the front of the input. If it is 0 and there is no event, more is needed.
    pub consumed: usize,
    pub event: Option<HandshakeEvent<E>>,
}

/// What the next bytes are.
#[derive(Debug)]
enum HandshakeState {
    ClientFlags,
    OptionHeader,
    OptionData { option: u32, length: usize },
    Skip { option: u32, left: u32 },
    Ended,
}

/// What has been agreed so far.
#[derive(Debug)]
pub(super) struct Negotiation {
    pub(super) limits: Limits,
    pub(super) structured: bool,
    pub(super) no_zeroes: bool,
    /// The contexts chosen, and for which export.
    pub(super) contexts: Option<(String, Vec<Context>)>,
}

#[derive(Debug)]
pub struct ServerHandshake {
    agreed: Negotiation,
    tls: Tls,
    encrypted: bool,
    fixed: bool,
    options_left: u32,
    bytes_left: u32,
    state: HandshakeState,
    gather: Gather,
}

impl ServerHandshake {
    /// A negotiation that begins. The greeting is appended to `out`.
    pub fn new(tls: Tls, limits: Limits, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&MAGIC.to_be_bytes());
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        let flags = handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES;
        out.extend_from_slice(&flags.to_be_bytes());
        Self {
            agreed: Negotiation {
                limits,
                structured: false,
                no_zeroes: false,
                contexts: None,
            },
            tls,
            encrypted: false,
            fixed: false,
            options_left: limits.options,
            bytes_left: limits.negotiation_bytes,
            state: HandshakeState::ClientFlags,
            gather: Gather::default(),
        }
    }

    /// Takes bytes from the front of `input`, at most to the end of one option, and appends what is
    /// answered to `out`. Answers should be sent before more is given: so one option's answer is all
    /// that waits.
    ///
    /// # Errors
    /// Why the connection ends. `out` may hold a last answer to be sent before it is closed.
    pub fn receive<D: Directory>(
        &mut self,
        input: &[u8],
        directory: &D,
        out: &mut Vec<u8>,
    ) -> Result<Received<D::Export>, ProtocolError> {
        let result = self.advance(input, directory, out);
        let ended = match &result {
            Err(_) => true,
            Ok(received) => matches!(
                received.event,
                Some(HandshakeEvent::Transmission(_) | HandshakeEvent::Aborted)
            ),
        };
        if ended {
            self.state = HandshakeState::Ended;
            self.gather = Gather::default();
        }
        result
    }

    /// Bytes of memory held for this connection beyond the machine itself.
    pub fn held(&self) -> usize {
        let contexts = self.agreed.contexts.iter();
        let names = contexts.map(|(name, list)| {
            name.capacity() + list.iter().map(|c| c.name.capacity()).sum::<usize>()
        });
        self.gather.held() + names.sum::<usize>()
    }

    fn advance<D: Directory>(
        &mut self,
        input: &[u8],
        directory: &D,
        out: &mut Vec<u8>,
    ) -> Result<Received<D::Export>, ProtocolError> {
        let mut consumed = 0;
        let mut event = None;
        loop {
            let rest = &input[consumed..];
            let needed = match self.state {
                HandshakeState::ClientFlags => 4,
                HandshakeState::OptionHeader => OPTION_HEADER_BYTES,
                HandshakeState::OptionData { length, .. } => length,
                HandshakeState::Skip { option, left } => {
                    let skipped = left.min(u32::try_from(rest.len()).unwrap_or(u32::MAX));
                    consumed += skipped as usize;
                    if skipped < left {
                        let left = left - skipped;
                        self.state = HandshakeState::Skip { option, left };
                    } else {
                        too_big(option, out);
                        self.state = HandshakeState::OptionHeader;
                    }
                    break;
                }
                HandshakeState::Ended => return Err(ProtocolError::Ended),
            };
            consumed += self.gather.take(rest, needed);
            if !self.gather.is_full(needed) {
                break;
            }
            let message = self.gather.finish();
            match self.state {
                HandshakeState::ClientFlags => self.client_flags(&message)?,
                HandshakeState::OptionHeader => self.option_header(&message, out)?,
                HandshakeState::OptionData { option, .. } => {
                    self.state = HandshakeState::OptionHeader;
                    event = self.option(option, &message, directory, out)?;
                    break;
                }
                HandshakeState::Skip { .. } | HandshakeState::Ended => {}
            }
        }
        Ok(Received { consumed, event })
    }

    fn client_flags(&mut self, message: &[u8]) -> Result<(), ProtocolError> {
        let flags = Fields(message).u32().ok_or(ProtocolError::Ended)?;
        let known = handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES;
        if flags & !u32::from(known) != 0 {
            return Err(ProtocolError::ClientFlags(flags));
        }
        self.fixed = flags & u32::from(handshake_flags::FIXED_NEWSTYLE) != 0;
        self.agreed.no_zeroes = flags & u32::from(handshake_flags::NO_ZEROES) != 0;
        self.state = HandshakeState::OptionHeader;
        Ok(())
    }

    fn option_header(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut fields = Fields(message);
        let (Some(magic), Some(option), Some(length)) = (fields.u64(), fields.u32(), fields.u32())
        else {
            return Err(ProtocolError::Ended);
        };
        if magic != OPTION_MAGIC {
            return Err(ProtocolError::Magic {
                message: "option",
                found: magic,
                expected: OPTION_MAGIC,
            });
        }
        if !self.fixed && option != option::EXPORT_NAME {
            return Err(ProtocolError::NotFixed(option));
        }
        let limits = self.agreed.limits;
        if self.options_left == 0 {
            return Err(ProtocolError::TooManyOptions(limits.options));
        }
        self.options_left -= 1;
        if length > self.bytes_left {
            if option != option::EXPORT_NAME {
                too_big(option, out);
            }
            let left = u64::from(self.bytes_left);
            return Err(ProtocolError::TooManyBytes {
                option,
                length,
                left,
            });
        }
        self.bytes_left -= length;
        if length <= limits.option_bytes {
            let length = length as usize;
            self.state = HandshakeState::OptionData { option, length };
        } else if option == option::EXPORT_NAME {
            let why = format!("a name of {length} bytes");
            return Err(ProtocolError::ExportName(why));
        } else {
            let left = length;
            self.state = HandshakeState::Skip { option, left };
        }
        Ok(())
    }

    fn option<D: Directory>(
        &mut self,
        option: u32,
        data: &[u8],
        directory: &D,
        out: &mut Vec<u8>,
    ) -> Result<Option<HandshakeEvent<D::Export>>, ProtocolError> {
        let transmission = |session| HandshakeEvent::Transmission(Box::new(session));
        let plain = self.tls == Tls::Required && !self.encrypted;
        match option {
            option::ABORT => {
                reply(out, option, option_reply::ACK, &[]);
                return Ok(Some(HandshakeEvent::Aborted));
            }
            option::STARTTLS => return Ok(self.start_tls(data, out)),
            option::EXPORT_NAME if plain => {
                return Err(ProtocolError::ExportName("TLS is required".to_owned()));
            }
            _ if plain => {
                let why = b"this server demands TLS";
                reply(out, option, option_reply::ERR_TLS_REQD, &[why]);
            }
            option::EXPORT_NAME => {
                let session = self.agreed.export_name(data, directory, out)?;
                return Ok(Some(transmission(session)));
            }
            option::LIST => self.agreed.list(data, directory, out),
            option::INFO | option::GO => {
                let session = self.agreed.info(option, data, directory, out);
                return Ok(session.map(transmission));
            }
            option::STRUCTURED_REPLY => self.agreed.structured_reply(data, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.agreed.meta_context(option, data, directory, out);
            }
            _ => reply(out, option, option_reply::ERR_UNSUP, &[]),
        }
        Ok(None)
    }

    fn start_tls<E>(&mut self, data: &[u8], out: &mut Vec<u8>) -> Option<HandshakeEvent<E>> {
        let (kind, why): (u32, &[u8]) = if self.tls == Tls::Absent {
            (option_reply::ERR_UNSUP, b"this server has no TLS")
        } else if self.encrypted {
            (option_reply::ERR_INVALID, b"TLS has begun already")
        } else if !data.is_empty() {
            (option_reply::ERR_INVALID, b"STARTTLS has no data")
        } else {
            reply(out, option::STARTTLS, option_reply::ACK, &[]);
            self.encrypted = true;
            // Agreements of a stranger in the middle must not outlive the plain text.
            self.agreed.structured = false;
            self.agreed.contexts = None;
            return Some(HandshakeEvent::StartTls);
        };
        reply(out, option::STARTTLS, kind, &[why]);
        None
    }
}

fn too_big(option: u32, out: &mut Vec<u8>) {
    let why = b"the option's data are too long";
    reply(out, option, option_reply::ERR_TOO_BIG, &[why]);
}
