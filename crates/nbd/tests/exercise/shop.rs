//! The exports of the tests, and messages of a client as bytes.

use flashlore_nbd::wire::{OPTION_MAGIC, REQUEST_MAGIC};
use flashlore_nbd::{BlockSizes, Directory, ExportInfo, Refusal};

/// Exports: `disk` and the default are 1 MiB, writable; `past` is read-only with a name and a
/// description; `wide` has sectors of 4096 bytes; `private` may not be had; `odd` contradicts itself.
#[derive(Clone, Copy, Debug)]
pub struct Shop;

pub const STORED: &str = "flashlore:stored";
pub const CHANGED: &str = "flashlore:changed-since=";

impl Directory for Shop {
    type Export = &'static str;

    fn open(&self, name: &str) -> Result<(ExportInfo, Self::Export), Refusal> {
        let mut info = ExportInfo::writable(1 << 20);
        info.contexts.push(STORED.to_owned());
        match name {
            "" => info.canonical_name = Some("disk".to_owned()),
            "disk" => {}
            "past" => {
                info = ExportInfo::read_only(1 << 20);
                info.description = "as it was".to_owned();
            }
            "wide" => {
                info.block_sizes = BlockSizes {
                    minimum: 4096,
                    preferred: 4096,
                    maximum: 1 << 20,
                }
            }
            "odd" => info.block_sizes.minimum = 3,
            "private" => return Err(Refusal::Policy("not for you".to_owned())),
            "late" => return Err(Refusal::Shutdown),
            _ => return Err(Refusal::Unknown(format!("there is no {name}"))),
        }
        Ok((info, "handle"))
    }

    fn list(&self) -> Vec<(String, String)> {
        [("disk", ""), ("past", "as it was")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .to_vec()
    }

    fn knows_context(&self, _: &Self::Export, context: &str) -> bool {
        context
            .strip_prefix(CHANGED)
            .is_some_and(|when| !when.is_empty())
    }
}

/// The client's flags: fixed newstyle without zeroes.
pub const FLAGS: [u8; 4] = [0, 0, 0, 3];

/// One option.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    announced(number, u32::try_from(data.len()).unwrap(), data)
}

/// One option that announces `length` bytes whatever it has.
pub fn announced(number: u32, length: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(data);
    bytes
}

pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// Data of INFO and GO.
pub fn info(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend(u16::try_from(wanted.len()).unwrap().to_be_bytes());
    bytes.extend(wanted.iter().flat_map(|kind| kind.to_be_bytes()));
    bytes
}

/// Data of the options on contexts.
pub fn meta(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    bytes.extend(queries.iter().flat_map(|query| string(query)));
    bytes
}

/// One request.
pub fn request(flags: u16, code: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(code.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Option and type of every reply in what a server said behind its greeting, and the data.
pub fn replies(said: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut rest = &said[18..];
    let mut list = Vec::new();
    while rest.len() >= 20 && rest[..8] == [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9] {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        let end = 20 + word(16) as usize;
        list.push((word(8), word(12), rest[20..end].to_vec()));
        rest = &rest[end..];
    }
    list
}
