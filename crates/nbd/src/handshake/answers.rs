//! What each option is answered: replies, and what changes in the negotiation.

use super::machine::Negotiation;
use super::options::{Bad, InfoRequest, MetaRequest, text};
use super::session::{Context, Session, longest_payload};
use crate::error::ProtocolError;
use crate::export::{Directory, ExportInfo, Refusal};
use crate::wire::{OPTION_REPLY_MAGIC, info, option, option_reply};

pub(super) fn reply(out: &mut Vec<u8>, option: u32, kind: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    // Every text that goes out is bounded by far less.
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn bad(out: &mut Vec<u8>, option: u32, why: Bad) {
    let (kind, why) = match why {
        Bad::Invalid(why) => (option_reply::ERR_INVALID, why),
        Bad::TooBig(why) => (option_reply::ERR_TOO_BIG, why),
    };
    reply(out, option, kind, &[why.as_bytes()]);
}

fn refused(out: &mut Vec<u8>, option: u32, refusal: &Refusal) {
    let (kind, why) = match refusal {
        Refusal::Unknown(why) => (option_reply::ERR_UNKNOWN, why.as_str()),
        Refusal::Policy(why) => (option_reply::ERR_POLICY, why.as_str()),
        Refusal::Shutdown => (option_reply::ERR_SHUTDOWN, "the server is shutting down"),
    };
    reply(out, option, kind, &[why.as_bytes()]);
}

impl Negotiation {
    /// Answers EXPORT_NAME: the session, or the end of the connection.
    pub(super) fn export_name<D: Directory>(
        &mut self,
        data: &[u8],
        directory: &D,
        out: &mut Vec<u8>,
    ) -> Result<Session<D::Export>, ProtocolError> {
        let name = text(data).map_err(|why| {
            let (Bad::Invalid(why) | Bad::TooBig(why)) = why;
            ProtocolError::ExportName(why.to_owned())
        })?;
        let (info, export) = directory.open(name).map_err(|refusal| {
            ProtocolError::ExportName(match refusal {
                Refusal::Unknown(why) | Refusal::Policy(why) => why,
                Refusal::Shutdown => "the server is shutting down".to_owned(),
            })
        })?;
        info.check()?;
        if needs_block_sizes(&info) {
            return Err(ProtocolError::ExportName(
                "its block sizes have to be negotiated".to_owned(),
            ));
        }
        out.extend_from_slice(&info.size.to_be_bytes());
        out.extend_from_slice(&info.flags(self.structured).to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; 124]);
        }
        Ok(self.session(name, info, export))
    }

    fn session<E>(&mut self, name: &str, info: ExportInfo, export: E) -> Session<E> {
        // Contexts chosen for another export do not count.
        let contexts = match self.contexts.take() {
            Some((of, contexts)) if of == name => contexts,
            _ => Vec::new(),
        };
        Session {
            export,
            name: name.to_owned(),
            info,
            structured: self.structured,
            contexts,
        }
    }

    pub(super) fn list<D: Directory>(&self, data: &[u8], directory: &D, out: &mut Vec<u8>) {
        if !data.is_empty() {
            return bad(out, option::LIST, Bad::Invalid("LIST has no data"));
        }
        for (name, description) in directory.list() {
            let length = u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes();
            let parts = [&length[..], name.as_bytes(), description.as_bytes()];
            reply(out, option::LIST, option_reply::SERVER, &parts);
        }
        reply(out, option::LIST, option_reply::ACK, &[]);
    }

    /// Answers INFO and GO; the session if it was GO and was granted.
    pub(super) fn info<D: Directory>(
        &mut self,
        which: u32,
        data: &[u8],
        directory: &D,
        out: &mut Vec<u8>,
    ) -> Option<Session<D::Export>> {
        let request = match InfoRequest::read(data) {
            Ok(request) => request,
            Err(why) => {
                bad(out, which, why);
                return None;
            }
        };
        let (info, export) = match directory.open(request.name) {
            Ok(found) => found,
            Err(refusal) => {
                refused(out, which, &refusal);
                return None;
            }
        };
        if let Err(why) = info.check() {
            let why = why.to_string();
            reply(out, which, option_reply::ERR_POLICY, &[why.as_bytes()]);
            return None;
        }
        if needs_block_sizes(&info) && !request.wants_block_size {
            let why = b"this export is for clients that ask for its block sizes";
            reply(out, which, option_reply::ERR_BLOCK_SIZE_REQD, &[why]);
            return None;
        }
        self.describe(which, &request, &info, out);
        reply(out, which, option_reply::ACK, &[]);
        (which == option::GO).then(|| self.session(request.name, info, export))
    }

    fn describe(
        &self,
        which: u32,
        request: &InfoRequest<'_>,
        export: &ExportInfo,
        out: &mut Vec<u8>,
    ) {
        let mut piece = |kind: u16, parts: &[&[u8]]| {
            let kind = kind.to_be_bytes();
            let all: Vec<&[u8]> = [&kind[..]]
                .into_iter()
                .chain(parts.iter().copied())
                .collect();
            reply(out, which, option_reply::INFO, &all);
        };
        let flags = export.flags(self.structured).to_be_bytes();
        piece(info::EXPORT, &[&export.size.to_be_bytes(), &flags]);
        if request.wants_name {
            let name = export.canonical_name.as_deref().unwrap_or(request.name);
            piece(info::NAME, &[name.as_bytes()]);
        }
        if request.wants_description && !export.description.is_empty() {
            piece(info::DESCRIPTION, &[export.description.as_bytes()]);
        }
        if request.wants_block_size {
            let sizes = export.block_sizes;
            piece(
                info::BLOCK_SIZE,
                &[
                    &sizes.minimum.to_be_bytes(),
                    &sizes.preferred.to_be_bytes(),
                    &longest_payload(export, &self.limits).to_be_bytes(),
                ],
            );
        }
    }

    pub(super) fn structured_reply(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let which = option::STRUCTURED_REPLY;
        if data.is_empty() {
            self.structured = true;
            reply(out, which, option_reply::ACK, &[]);
        } else {
            bad(out, which, Bad::Invalid("STRUCTURED_REPLY has no data"));
        }
    }

    /// Answers LIST_META_CONTEXT and SET_META_CONTEXT.
    pub(super) fn meta_context<D: Directory>(
        &mut self,
        which: u32,
        data: &[u8],
        directory: &D,
        out: &mut Vec<u8>,
    ) {
        let set = which == option::SET_META_CONTEXT;
        if set {
            // Whatever comes of it, the choice before it no longer counts.
            self.contexts = None;
        }
        if !self.structured {
            let why = Bad::Invalid("structured replies have to be negotiated first");
            return bad(out, which, why);
        }
        let request = match MetaRequest::read(data) {
            Ok(request) => request,
            Err(why) => return bad(out, which, why),
        };
        let (info, export) = match directory.open(request.name) {
            Ok(found) => found,
            Err(refusal) => return refused(out, which, &refusal),
        };
        let knows = |context: &str| {
            info.contexts.iter().any(|known| known == context)
                || directory.knows_context(&export, context)
        };
        let names = if set {
            chosen(&request, knows)
        } else {
            listed(&request, &info, knows)
        };
        if names.len() > self.limits.contexts {
            return bad(out, which, Bad::TooBig("too many contexts"));
        }
        // Numbers are given in the order of the choice; a listing has none.
        let contexts: Vec<Context> = (1..)
            .zip(names)
            .map(|(number, name)| Context {
                id: if set { number } else { 0 },
                name,
            })
            .collect();
        for context in &contexts {
            let parts = [&context.id.to_be_bytes()[..], context.name.as_bytes()];
            reply(out, which, option_reply::META_CONTEXT, &parts);
        }
        reply(out, which, option_reply::ACK, &[]);
        if set {
            self.contexts = Some((request.name.to_owned(), contexts));
        }
    }
}

/// Without negotiation a client assumes that sectors of 512 bytes are served.
fn needs_block_sizes(info: &ExportInfo) -> bool {
    info.block_sizes.minimum > 512
}

/// The contexts that a choice names, each once. A namespace alone chooses nothing.
fn chosen(request: &MetaRequest<'_>, knows: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for query in &request.queries {
        if !names.iter().any(|name| name == query) && knows(query) {
            names.push((*query).to_owned());
        }
    }
    names
}

/// The contexts that a listing asks for: all without a query, those of a namespace (`base:`), and
/// those named in full.
fn listed(
    request: &MetaRequest<'_>,
    info: &ExportInfo,
    knows: impl Fn(&str) -> bool,
) -> Vec<String> {
    let asked = |context: &str| {
        request.queries.is_empty()
            || request.queries.iter().any(|query| {
                *query == context || (query.ends_with(':') && context.starts_with(query))
            })
    };
    let mut names: Vec<String> = info
        .contexts
        .iter()
        .filter(|context| asked(context))
        .cloned()
        .collect();
    for name in chosen(request, knows) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
