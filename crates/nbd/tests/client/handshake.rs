//! The client's negotiation: greeting, TLS if wanted, structured replies, metadata contexts, and then
//! an export or the list of exports.
//!
//! Every option waits for its answer, so at most one is outstanding. A server's answer is held up to
//! [`MAX_REPLY`] bytes; a longer one ends the connection, as does a list or an answer without end.

use super::bytes::{Fields, Gather};
use super::error::ClientError;
use flashlore_nbd::handshake::Context;
use flashlore_nbd::wire::{
    GREETING_BYTES, MAGIC, MAX_STRING, OPTION_MAGIC, OPTION_REPLY_HEADER_BYTES, OPTION_REPLY_MAGIC,
    export_flags, handshake_flags, info, option, option_reply,
};

/// The longest answer to an option, in bytes: two texts and some fields.
const MAX_REPLY: usize = 2 * MAX_STRING + 64;
/// The most answers to one option, and so the longest list of exports.
const MAX_REPLIES: u32 = 10_000;
/// The most bytes of names and descriptions in a list of exports.
const MAX_LISTED_BYTES: usize = 4 << 20;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Use an export.
    Export {
        /// Its name; empty for the default one.
        name: String,
        /// Ask for structured replies.
        structured: bool,
        /// The metadata contexts wanted; those the server does not know are missing from the session.
        contexts: Vec<String>,
    },
    /// Learn which exports there are.
    List,
}

/// What was agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSession {
    /// Bytes of the export.
    pub size: u64,
    /// Transmission flags, `wire::export_flags`.
    pub flags: u16,
    /// The sentence that the server says of it.
    pub description: String,
    /// Minimum, preferred and maximum block size in bytes, if the server told them.
    pub block_sizes: Option<(u32, u32, u32)>,
    /// Replies to reads are structured.
    pub structured: bool,
    /// The contexts that BLOCK_STATUS answers.
    pub contexts: Vec<Context>,
}

/// An export in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What the server says of it.
    pub description: String,
}

/// What a negotiation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// TLS begins with the next byte in both directions: what this call appended to `out` is the
    /// first that goes through it.
    StartTls,
    /// Transmission begins.
    Ready(ClientSession),
    /// The list; the client has sent ABORT and closes the connection.
    List(Vec<Listed>),
}

/// What became of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes taken from the front of the input. If there is no event, all of it was.
    pub consumed: usize,
    /// What happened, if anything.
    pub event: Option<ClientEvent>,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    ReplyHeader,
    Reply { kind: u32, length: usize },
    Ended,
}

/// The client's side of a negotiation.
#[derive(Debug)]
pub struct ClientHandshake {
    goal: Goal,
    tls: bool,
    state: State,
    /// The option that waits for its answer.
    asked: u32,
    replies: u32,
    session: ClientSession,
    has_export: bool,
    listed: Vec<Listed>,
    listed_bytes: usize,
    gather: Gather,
}

fn unusable(message: &'static str, reason: impl Into<String>) -> ClientError {
    ClientError::Server {
        message,
        reason: reason.into(),
    }
}

fn text(bytes: &[u8], message: &'static str) -> Result<String, ClientError> {
    if bytes.len() > MAX_STRING {
        return Err(unusable(message, "a text is longer than 4096 bytes"));
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| unusable(message, "a text is not UTF-8"))
}

impl ClientHandshake {
    /// A negotiation that waits for the server's greeting; `tls` demands encryption before anything
    /// is asked.
    #[must_use]
    pub fn new(goal: Goal, tls: bool) -> Self {
        Self {
            goal,
            tls,
            state: State::Greeting,
            asked: 0,
            replies: 0,
            session: ClientSession::default(),
            has_export: false,
            listed: Vec::new(),
            listed_bytes: 0,
            gather: Gather::default(),
        }
    }

    /// Takes bytes from the front of `input`, at most to the next event, and appends what is said to
    /// the server to `out`.
    ///
    /// # Errors
    /// Why the connection ends.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ClientError> {
        let result = self.advance(input, out);
        let ended = match &result {
            Err(_) => true,
            Ok(received) => matches!(
                received.event,
                Some(ClientEvent::Ready(_) | ClientEvent::List(_))
            ),
        };
        if ended {
            self.state = State::Ended;
        }
        result
    }

    fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ClientError> {
        let mut consumed = 0;
        loop {
            let needed = match self.state {
                State::Greeting => GREETING_BYTES,
                State::ReplyHeader => OPTION_REPLY_HEADER_BYTES,
                State::Reply { length, .. } => length,
                State::Ended => return Err(ClientError::Ended),
            };
            consumed += self.gather.take(&input[consumed..], needed);
            let event = if self.gather.is_full(needed) {
                let message = self.gather.finish();
                self.message(&message, out)?
            } else if consumed == input.len() {
                let event = None;
                return Ok(Received { consumed, event });
            } else {
                None
            };
            if event.is_some() {
                return Ok(Received { consumed, event });
            }
        }
    }

    fn message(
        &mut self,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent>, ClientError> {
        match self.state {
            State::Greeting => {
                self.greeting(message, out)?;
                self.state = State::ReplyHeader;
                Ok(None)
            }
            State::ReplyHeader => {
                self.reply_header(message)?;
                Ok(None)
            }
            State::Reply { kind, .. } => {
                self.state = State::ReplyHeader;
                self.reply(kind, message, out)
            }
            State::Ended => Err(ClientError::Ended),
        }
    }

    fn greeting(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), ClientError> {
        let mut fields = Fields(message);
        for expected in [MAGIC, OPTION_MAGIC] {
            let found = fields.u64().unwrap_or(0);
            if found != expected {
                return Err(ClientError::Magic {
                    message: "greeting",
                    found,
                    expected,
                });
            }
        }
        let flags = fields.u16().unwrap_or(0);
        if flags & handshake_flags::FIXED_NEWSTYLE == 0 {
            return Err(ClientError::ServerFlags(flags));
        }
        let known = handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES;
        out.extend_from_slice(&u32::from(flags & known).to_be_bytes());
        if self.tls {
            self.ask(option::STARTTLS, &[], out);
        } else {
            self.first_option(out);
        }
        Ok(())
    }

    fn first_option(&mut self, out: &mut Vec<u8>) {
        match &self.goal {
            Goal::List => self.ask(option::LIST, &[], out),
            Goal::Export {
                structured: true, ..
            } => self.ask(option::STRUCTURED_REPLY, &[], out),
            Goal::Export { .. } => self.go(out),
        }
    }

    fn ask(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&option.to_be_bytes());
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(data);
        self.asked = option;
        self.replies = 0;
    }

    fn go(&mut self, out: &mut Vec<u8>) {
        let Goal::Export { name, .. } = &self.goal else {
            return;
        };
        let mut data = string(name);
        data.extend_from_slice(&2u16.to_be_bytes());
        data.extend_from_slice(&info::DESCRIPTION.to_be_bytes());
        data.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
        self.ask(option::GO, &data, out);
    }

    fn contexts_or_go(&mut self, out: &mut Vec<u8>) {
        match &self.goal {
            Goal::Export { name, contexts, .. } if !contexts.is_empty() => {
                let mut data = string(name);
                let count = u32::try_from(contexts.len()).unwrap_or(u32::MAX);
                data.extend_from_slice(&count.to_be_bytes());
                for context in contexts {
                    data.extend_from_slice(&string(context));
                }
                self.ask(option::SET_META_CONTEXT, &data, out);
            }
            _ => self.go(out),
        }
    }

    fn reply_header(&mut self, message: &[u8]) -> Result<(), ClientError> {
        const WHAT: &str = "answer to an option";
        let mut fields = Fields(message);
        let found = fields.u64().unwrap_or(0);
        if found != OPTION_REPLY_MAGIC {
            return Err(ClientError::Magic {
                message: WHAT,
                found,
                expected: OPTION_REPLY_MAGIC,
            });
        }
        let (Some(option), Some(kind), Some(length)) = (fields.u32(), fields.u32(), fields.u32())
        else {
            return Err(ClientError::Ended);
        };
        if option != self.asked {
            let reason = format!("it is for option {option}, expected {}", self.asked);
            return Err(unusable(WHAT, reason));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_REPLY {
            let reason = format!("it has {length} bytes, expected at most {MAX_REPLY}");
            return Err(unusable(WHAT, reason));
        }
        self.replies += 1;
        if self.replies > MAX_REPLIES {
            let reason = format!("there are more than {MAX_REPLIES} of them");
            return Err(unusable(WHAT, reason));
        }
        self.state = State::Reply { kind, length };
        Ok(())
    }

    fn reply(
        &mut self,
        kind: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent>, ClientError> {
        if kind & option_reply::ERROR_BIT != 0 {
            return self.refused(kind, data, out).map(|()| None);
        }
        match (self.asked, kind) {
            (_, option_reply::ACK) => return self.acknowledged(out),
            (option::LIST, option_reply::SERVER) => self.listed(data)?,
            (option::GO, option_reply::INFO) => self.information(data)?,
            (option::SET_META_CONTEXT, option_reply::META_CONTEXT) => self.context(data)?,
            _ => {
                let reason = format!("type {kind} does not belong to option {}", self.asked);
                return Err(unusable("answer to an option", reason));
            }
        }
        Ok(None)
    }

    /// Without structured replies or contexts there is less to know, and that is all.
    fn refused(&mut self, code: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), ClientError> {
        let option = match self.asked {
            option::STRUCTURED_REPLY => {
                self.go(out);
                return Ok(());
            }
            option::SET_META_CONTEXT => {
                self.session.contexts.clear();
                self.go(out);
                return Ok(());
            }
            option::STARTTLS => "STARTTLS",
            option::LIST => "LIST",
            _ => "GO",
        };
        let message = String::from_utf8_lossy(&data[..data.len().min(MAX_STRING)])
            .replace(char::is_control, "");
        Err(ClientError::Refused {
            option,
            code,
            message,
        })
    }

    fn acknowledged(&mut self, out: &mut Vec<u8>) -> Result<Option<ClientEvent>, ClientError> {
        match self.asked {
            option::STARTTLS => {
                self.first_option(out);
                return Ok(Some(ClientEvent::StartTls));
            }
            option::STRUCTURED_REPLY => {
                self.session.structured = true;
                self.contexts_or_go(out);
            }
            option::SET_META_CONTEXT => self.go(out),
            option::LIST => {
                self.ask(option::ABORT, &[], out);
                return Ok(Some(ClientEvent::List(std::mem::take(&mut self.listed))));
            }
            _ if self.has_export => {
                return Ok(Some(ClientEvent::Ready(std::mem::take(&mut self.session))));
            }
            _ => return Err(unusable("answer to GO", "it does not tell the size")),
        }
        Ok(None)
    }

    fn listed(&mut self, data: &[u8]) -> Result<(), ClientError> {
        const WHAT: &str = "list of exports";
        self.listed_bytes += data.len();
        if self.listed_bytes > MAX_LISTED_BYTES {
            let reason = format!("it has more than {MAX_LISTED_BYTES} bytes");
            return Err(unusable(WHAT, reason));
        }
        let mut fields = Fields(data);
        let name = fields
            .string()
            .ok_or_else(|| unusable(WHAT, "a name is longer than its message"))?;
        self.listed.push(Listed {
            name: text(name, WHAT)?,
            description: text(fields.0, WHAT)?,
        });
        Ok(())
    }

    fn context(&mut self, data: &[u8]) -> Result<(), ClientError> {
        const WHAT: &str = "list of contexts";
        let mut fields = Fields(data);
        let id = fields
            .u32()
            .ok_or_else(|| unusable(WHAT, "a number is missing"))?;
        let name = text(fields.0, WHAT)?;
        let wanted = match &self.goal {
            Goal::Export { contexts, .. } => contexts.contains(&name),
            Goal::List => false,
        };
        let known = &self.session.contexts;
        if !wanted || known.iter().any(|c| c.id == id || c.name == name) {
            return Err(unusable(
                WHAT,
                format!("{name:?} was not asked for, or comes twice"),
            ));
        }
        self.session.contexts.push(Context { id, name });
        Ok(())
    }

    fn information(&mut self, data: &[u8]) -> Result<(), ClientError> {
        const WHAT: &str = "information on the export";
        let short = || unusable(WHAT, "a field is missing");
        let mut fields = Fields(data);
        match fields.u16().ok_or_else(short)? {
            info::EXPORT => {
                self.session.size = fields.u64().ok_or_else(short)?;
                self.session.flags = fields.u16().ok_or_else(short)?;
                if self.session.flags & export_flags::HAS_FLAGS == 0 {
                    return Err(unusable(WHAT, "its flags say that it has none"));
                }
                self.has_export = true;
            }
            info::DESCRIPTION => self.session.description = text(fields.0, WHAT)?,
            info::BLOCK_SIZE => {
                let mut size = || fields.u32().ok_or_else(short);
                self.session.block_sizes = Some((size()?, size()?, size()?));
            }
            // What was not asked for may come all the same.
            _ => {}
        }
        Ok(())
    }
}

fn string(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
