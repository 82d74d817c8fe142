//! A slow reader of the protocol, written apart from the fast one: it looks at the whole stream, takes
//! messages by position, and knows the numbers by themselves. It says which answers are due.

use flashlore_nbd::Limits;
use flashlore_nbd::handshake::Tls;

use super::Talk;
use super::shop;

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

const ACK: u32 = 1;
const UNSUP: u32 = 0x8000_0001;
const POLICY: u32 = 0x8000_0002;
const INVALID: u32 = 0x8000_0003;
const TLS_REQD: u32 = 0x8000_0005;
const UNKNOWN: u32 = 0x8000_0006;
const SHUTDOWN: u32 = 0x8000_0007;
const BLOCK_SIZE: u32 = 0x8000_0008;
const TOO_BIG: u32 = 0x8000_0009;

/// How a stream of options ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// More may come.
    Open,
    Broken,
    Aborted,
    Transmission,
}

/// Splits `string` with a 32-bit length from the front; the position of the rest.
fn text(data: &[u8], at: usize) -> Result<(String, usize), u32> {
    if data.len() < at + 4 {
        return Err(INVALID);
    }
    let end = at + 4 + number(&data[at..at + 4]) as usize;
    if data.len() < end {
        return Err(INVALID);
    }
    let bytes = &data[at + 4..end];
    if bytes.len() > 4096 {
        return Err(TOO_BIG);
    }
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| INVALID)?;
    if text.contains('\0') {
        return Err(INVALID);
    }
    Ok((text, end))
}

fn exists(name: &str) -> Result<(), u32> {
    match name {
        "" | "disk" | "past" | "wide" | "odd" => Ok(()),
        "private" => Err(POLICY),
        "late" => Err(SHUTDOWN),
        _ => Err(UNKNOWN),
    }
}

/// Types of the replies to INFO or GO, the last of which says whether it was granted.
fn info(data: &[u8]) -> Result<Vec<u32>, u32> {
    let (name, at) = text(data, 0)?;
    if data.len() < at + 2 {
        return Err(INVALID);
    }
    let count = number(&data[at..at + 2]) as usize;
    if data.len() != at + 2 + 2 * count {
        return Err(INVALID);
    }
    let wants = |kind: u64| data[at + 2..].chunks(2).any(|pair| number(pair) == kind);
    exists(&name)?;
    if name == "odd" {
        return Err(POLICY);
    }
    if name == "wide" && !wants(3) {
        return Err(BLOCK_SIZE);
    }
    let pieces =
        1 + usize::from(wants(1)) + usize::from(wants(2) && name == "past") + usize::from(wants(3));
    let mut types = vec![3; pieces];
    types.push(ACK);
    Ok(types)
}

/// Types of the replies to an option on contexts.
fn contexts(data: &[u8], set: bool, limits: &Limits) -> Result<Vec<u32>, u32> {
    let (name, at) = text(data, 0)?;
    if data.len() < at + 4 {
        return Err(INVALID);
    }
    let count = number(&data[at..at + 4]);
    if count > 256 {
        return Err(TOO_BIG);
    }
    let mut at = at + 4;
    let mut queries = Vec::new();
    for _ in 0..count {
        let (query, next) = text(data, at)?;
        queries.push(query);
        at = next;
    }
    if at != data.len() {
        return Err(INVALID);
    }
    exists(&name)?;
    let mut known = vec!["base:allocation".to_owned()];
    if name != "past" {
        known.push("flashlore:stored".to_owned());
    }
    let changed = queries
        .iter()
        .filter(|query| query.starts_with(shop::CHANGED) && query.len() > shop::CHANGED.len());
    known.extend(changed.cloned().collect::<std::collections::BTreeSet<_>>());
    let listed = if name == "past" { 1 } else { 2 };
    let chosen = known.iter().enumerate().filter(|(index, context)| {
        let listed = *index < listed;
        queries.contains(context)
            || (!set && listed && queries.is_empty())
            || (!set
                && listed
                && queries
                    .iter()
                    .any(|query| query.ends_with(':') && context.starts_with(query.as_str())))
    });
    let count = chosen.count();
    if count > limits.contexts {
        return Err(TOO_BIG);
    }
    let mut types = vec![4; count];
    types.push(ACK);
    Ok(types)
}

/// Compares what a server said with what is due.
pub fn check_negotiation(tls: Tls, limits: &Limits, stream: &[u8], talk: &Talk) {
    let mut due: Vec<(u32, u32)> = Vec::new();
    let end = due_replies(tls, limits, stream, &mut due);
    let said: Vec<(u32, u32)> = shop::replies(&talk.said)
        .into_iter()
        .map(|(option, kind, _)| (option, kind))
        .collect();
    assert_eq!(said, due, "events {:?}", talk.events);
    let last = talk.events.last().map_or("", String::as_str);
    let ended = match last {
        "" | "StartTls" => End::Open,
        "Aborted" => End::Aborted,
        text if text.starts_with("Transmission") => End::Transmission,
        _ => End::Broken,
    };
    assert_eq!(ended, end, "events {:?}", talk.events);
}

fn due_replies(tls: Tls, limits: &Limits, stream: &[u8], due: &mut Vec<(u32, u32)>) -> End {
    if stream.len() < 4 {
        return End::Open;
    }
    let flags = number(&stream[..4]);
    if flags > 3 {
        return End::Broken;
    }
    let fixed = flags & 1 == 1;
    let (mut at, mut options, mut bytes) = (4, 0, 0);
    let (mut encrypted, mut structured) = (false, false);
    loop {
        if stream.len() < at + 16 {
            return End::Open;
        }
        let option = number(&stream[at + 8..at + 12]) as u32;
        let length = number(&stream[at + 12..at + 16]);
        if &stream[at..at + 8] != b"IHAVEOPT" || (!fixed && option != 1) {
            return End::Broken;
        }
        options += 1;
        bytes += length;
        if options > limits.options {
            return End::Broken;
        }
        if bytes > u64::from(limits.negotiation_bytes) {
            if option != 1 {
                due.push((option, TOO_BIG));
            }
            return End::Broken;
        }
        let too_long = length > u64::from(limits.option_bytes);
        if option == 1 && too_long {
            return End::Broken;
        }
        at += 16 + length as usize;
        if stream.len() < at {
            return End::Open;
        }
        if too_long {
            due.push((option, TOO_BIG));
            continue;
        }
        let data = &stream[at - length as usize..at];
        let result = match option {
            2 => {
                due.push((2, ACK));
                return End::Aborted;
            }
            5 if tls == Tls::Absent => Err(UNSUP),
            5 if encrypted || !data.is_empty() => Err(INVALID),
            5 => {
                encrypted = true;
                structured = false;
                Ok(vec![ACK])
            }
            1 if tls == Tls::Required && !encrypted => return End::Broken,
            _ if tls == Tls::Required && !encrypted => Err(TLS_REQD),
            1 => {
                let name = String::from_utf8(data.to_vec()).unwrap_or("\0".to_owned());
                let fit = exists(&name).is_ok() && name != "odd" && name != "wide";
                return if fit { End::Transmission } else { End::Broken };
            }
            3 if !data.is_empty() => Err(INVALID),
            3 => Ok(vec![2, 2, ACK]),
            6 => info(data),
            7 => match info(data) {
                Ok(types) => {
                    due.extend(types.into_iter().map(|kind| (7, kind)));
                    return End::Transmission;
                }
                Err(error) => Err(error),
            },
            8 if !data.is_empty() => Err(INVALID),
            8 => {
                structured = true;
                Ok(vec![ACK])
            }
            9 | 10 if !structured => Err(INVALID),
            9 | 10 => contexts(data, option == 10, limits),
            _ => Err(UNSUP),
        };
        let types = result.unwrap_or_else(|error| vec![error]);
        due.extend(types.into_iter().map(|kind| (option, kind)));
    }
}

/// Compares the events of a stream of requests with what is due. `choice` is that of `rules`.
pub fn check_requests(choice: u8, limits: &Limits, stream: &[u8], events: &[String]) {
    let mut events = events.iter();
    let mut at = 0;
    loop {
        let event = events.next();
        if stream.len() < at + 28 {
            assert_eq!(event, None);
            return;
        }
        let head = &stream[at..at + 28];
        let code = number(&head[6..8]);
        let length = number(&head[24..28]);
        at += 28;
        if number(&head[..4]) != 0x2560_9513 {
            assert!(event.is_some_and(|event| event.contains("begins with")));
            return;
        }
        if code == 2 {
            assert_eq!(event.map(String::as_str), Some("Disconnect"));
            return;
        }
        let error = due_error(choice, limits, head);
        let has_payload = code == 1 && length > 0;
        if error.is_some() && has_payload && length > u64::from(limits.skipped_bytes) {
            assert!(event.is_some_and(|event| event.starts_with("a write of")));
            return;
        }
        let mut event = event.cloned();
        if has_payload {
            let payload = &stream[at..stream.len().min(at + length as usize)];
            at += length as usize;
            let whole = at <= stream.len();
            if error.is_none() {
                assert!(event.is_some_and(|event| event.starts_with("Request")));
                event = events.next().cloned();
                let expected = match (whole, payload.is_empty()) {
                    (true, _) => Some(format!("payload {payload:?}")),
                    (false, false) => Some(format!("part of a payload {payload:?}")),
                    (false, true) => None,
                };
                assert_eq!(event, expected);
                if whole {
                    continue;
                }
                return;
            }
            if !whole {
                assert_eq!(event, None);
                return;
            }
        }
        let event = event.expect("a whole request is an event");
        match error {
            None => assert!(event.starts_with("Request"), "{event}"),
            Some(errno) => assert!(event.contains(&format!("errno: {errno},")), "{event}"),
        }
    }
}

/// The error that a request gets, by the rules of `exercise::rules`.
fn due_error(choice: u8, limits: &Limits, head: &[u8]) -> Option<&'static str> {
    let on = |bit: u8| choice & bit != 0;
    let (flags, code) = (number(&head[4..6]), number(&head[6..8]));
    let (offset, length) = (number(&head[16..24]), number(&head[24..28]));
    let (read_only, structured) = (on(1), !on(4));
    if ![0, 1, 3, 4, 5, 6, 7].contains(&code) {
        return Some("Invalid");
    }
    if read_only && [1, 4, 6].contains(&code) {
        return Some("NotPermitted");
    }
    let missing = match code {
        3 => on(16),
        4 => on(128),
        5 => on(32),
        7 => !structured || on(8),
        _ => false,
    };
    let mut allowed = if on(16) { 0 } else { 1 };
    allowed |= match code {
        0 if structured => 4,
        6 if on(64) => 2,
        6 => 2 | 16,
        7 => 8,
        _ => 0,
    };
    if missing || flags & !allowed != 0 {
        return Some("Invalid");
    }
    if code == 3 {
        return (offset != 0 || length != 0).then_some("Invalid");
    }
    if code < 2 && length > u64::from(limits.payload_bytes) {
        return Some(if flags & 4 != 0 {
            "Overflow"
        } else {
            "Invalid"
        });
    }
    let unaligned = on(2) && (offset % 512 != 0 || length % 512 != 0);
    if unaligned || (code == 7 && length == 0) {
        return Some("Invalid");
    }
    let beyond = u128::from(offset) + u128::from(length) > 1 << 20;
    match code {
        _ if !beyond => None,
        1 | 6 => Some("NoSpace"),
        _ => Some("Invalid"),
    }
}
