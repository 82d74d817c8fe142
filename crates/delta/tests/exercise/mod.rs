//! What any bytes may do to the decoder: give a page or an error, whatever the base.

use flashlore_delta::{Codec, Encoder, Form, HEADER_BYTES, MAX_BYTES, PAGE_BYTES, Page, decode};

/// Takes the bytes as an encoded page, as a body of each kind, and as pages to be encoded.
pub fn exercise(bytes: &[u8]) {
    let mut base = [0x5A; PAGE_BYTES];
    base[..bytes.len().min(PAGE_BYTES)].copy_from_slice(&bytes[..bytes.len().min(PAGE_BYTES)]);
    take(bytes, &base);
    let body = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    let mut encoded = vec![0; HEADER_BYTES];
    encoded.extend_from_slice(body);
    encoded[1..HEADER_BYTES].copy_from_slice(&(body.len() as u16).to_le_bytes());
    for kind in 1..=4 {
        encoded[0] = kind;
        take(&encoded, &base);
    }
    let (old, new) = bytes.split_at(bytes.len() / 2);
    round_trip(&repeated(old), &repeated(new));
}

/// Decodes with and without a base.
fn take(encoded: &[u8], base: &Page) {
    let mut page = [0; PAGE_BYTES];
    let with = decode(encoded, Some(base), &mut page).is_ok();
    let without = decode(encoded, None, &mut page).is_ok();
    let form = Form::read(encoded);
    if with {
        let form = form.expect("a header, where the rest is right");
        assert_eq!(form.encoded_bytes(), encoded.len());
        assert_eq!(without, !form.has_base);
    } else {
        assert!(!without);
    }
}

/// A page of the bytes, again and again.
fn repeated(bytes: &[u8]) -> Page {
    let mut page = [0; PAGE_BYTES];
    for (into, byte) in page.iter_mut().zip(bytes.iter().cycle()) {
        *into = *byte;
    }
    page
}

/// Encodes `new` in every way, decodes it, and demands that limits are kept exactly.
pub fn round_trip(old: &Page, new: &Page) {
    let mut encoder = Encoder::new();
    for codec in Codec::ALL {
        for base in [Some(old), None] {
            let mut encode = |limit: usize| match base {
                Some(base) => encoder.delta(codec, base, new, limit).map(<[u8]>::to_vec),
                None => encoder.alone(codec, new, limit).map(<[u8]>::to_vec),
            };
            let Some(encoded) = encode(usize::MAX) else {
                continue;
            };
            assert!(encoded.len() <= MAX_BYTES, "{codec:?}");
            let form = Form::read(&encoded).expect("a header");
            assert_eq!((form.codec, form.has_base), (codec, base.is_some()));
            let mut page = [0xA5; PAGE_BYTES];
            decode(&encoded, base, &mut page).expect("what was encoded");
            assert!(page == *new, "{codec:?}, base {}", base.is_some());
            assert_eq!(encode(encoded.len()).as_ref(), Some(&encoded), "{codec:?}");
            assert_eq!(encode(encoded.len() - 1), None, "{codec:?}");
        }
    }
}
