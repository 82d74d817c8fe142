//! Files of pages: round trips, damage, and the captures that come with one.

use crate::common;

use std::io::Write;

use common::*;
use flashlore_testkit::data;
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::{Batch, Existing, Pages, PagesWriter, TraceReader};
use md5::{Digest, Md5};
use tempfile::TempDir;

const LIMIT: u64 = 1 << 30;

/// Pages that do not compress alone, every third one like an earlier one but for a byte.
fn made(count: usize) -> Vec<[u8; PAGE_BYTES]> {
    let mut state = 7u64;
    let mut pages: Vec<[u8; PAGE_BYTES]> = Vec::new();
    for number in 0..count {
        let mut page = match number % 3 {
            2 => pages[number / 2],
            _ => std::array::from_fn(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            }),
        };
        page[number % PAGE_BYTES] ^= 0xff;
        pages.push(page);
    }
    pages
}

fn failure(bytes: Vec<u8>, limit_bytes: u64) -> String {
    Pages::from_bytes("p", bytes, limit_bytes)
        .unwrap_err()
        .to_string()
}

#[test]
fn pages_survive_writing_and_reading() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pages.zst");
    let wanted = made(3000);
    let mut writer = PagesWriter::create(&path, Existing::Refuse).unwrap();
    for page in &wanted {
        writer.push(page).unwrap();
        assert!(!path.exists(), "the file appears when it is complete");
    }
    assert_eq!(writer.finish().unwrap(), 3000);
    let stored = std::fs::metadata(&path).unwrap().len();
    assert!(
        stored < 9_000_000,
        "repeated pages are found far back: {stored}"
    );
    let pages = Pages::open(&path, LIMIT).unwrap();
    assert_eq!(pages.len(), 3000);
    for (value, page) in wanted.iter().enumerate() {
        assert_eq!(pages.page(value as u32), Some(page));
    }
    assert_eq!(pages.page(3000), None);
    // Bare pages are the same.
    let bare = Pages::from_bytes("p", wanted.concat(), LIMIT).unwrap();
    assert_eq!(bare.page(2999), pages.page(2999));
    // A writer that is given up leaves nothing.
    let other = directory.path().join("other");
    let mut writer = PagesWriter::create(&other, Existing::Refuse).unwrap();
    writer.push(&wanted[0]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    let nowhere = PagesWriter::create("/no/such/directory/p", Existing::Refuse)
        .err()
        .unwrap();
    assert!(
        nowhere
            .to_string()
            .contains("cannot write /no/such/directory/p"),
        "{nowhere}"
    );
}

#[test]
fn digests_are_verified_page_by_page() {
    let wanted = made(10);
    let pages = Pages::from_bytes("p", wanted.concat(), LIMIT).unwrap();
    let mut digests: Vec<[u8; 16]> = wanted.iter().map(|page| Md5::digest(page).into()).collect();
    pages.verify(digests.iter().copied()).unwrap();
    let error = pages
        .verify(digests[..9].iter().copied())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "p: not a usable file of pages: it holds 10 pages, expected 9, one for each distinct value \
         of the trace"
    );
    let more = digests.iter().copied().chain([[0; 16]]);
    let error = pages.verify(more).unwrap_err().to_string();
    assert!(error.contains("it holds 10 pages, expected 11"), "{error}");
    digests[3][0] ^= 1;
    let error = pages.verify(digests).unwrap_err().to_string();
    assert!(
        error.contains("page 3, at offset 12288 of the pages, has the MD5"),
        "{error}"
    );
}

#[test]
fn damaged_files_are_refused() {
    let plain = made(40).concat();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(&plain).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(
        Pages::from_bytes("p", packed.clone(), LIMIT).unwrap().len(),
        40
    );
    let found = failure(plain[..plain.len() - 1].to_vec(), LIMIT);
    assert!(
        found.contains(
            "its last page, at offset 159744 of the pages, has 4095 bytes, expected 4096"
        ),
        "{found}"
    );
    for cut in [5, packed.len() / 2, packed.len() - 1] {
        let found = failure(packed[..cut].to_vec(), LIMIT);
        let wanted = format!("the zstd data breaks off or is damaged near byte {cut}");
        assert!(found.contains(&wanted), "{found}");
    }
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0x10;
    assert!(failure(damaged, LIMIT).contains("damaged"));
    // The limit is kept whether the excess comes from a decompressor or not.
    for bytes in [&plain, &packed] {
        let limit = plain.len() as u64;
        assert!(Pages::from_bytes("p", bytes.clone(), limit).is_ok());
        let found = failure(bytes.clone(), limit - 1);
        assert!(found.contains("more than 163839 bytes"), "{found}");
    }
    // A page may begin like another kind of compressed file.
    let mut gzip = vec![0; PAGE_BYTES];
    gzip[..2].copy_from_slice(&[0x1f, 0x8b]);
    assert_eq!(Pages::from_bytes("p", gzip, LIMIT).unwrap().len(), 1);
    assert!(
        Pages::from_bytes("p", Vec::new(), LIMIT)
            .unwrap()
            .is_empty()
    );
    let error = Pages::open("/no/such/file", LIMIT).unwrap_err().to_string();
    assert!(error.contains("cannot open the file"), "{error}");
}

#[test]
fn windows_above_128_mib_are_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(&[0; PAGE_BYTES]).unwrap();
    let found = failure(encoder.finish().unwrap(), LIMIT);
    assert!(found.contains("damaged near byte"), "{found}");
}

#[test]
fn captures_with_content() {
    for (name, count) in [("sqlite-bytes", 21_491), ("upgrade-bytes", 25_414)] {
        let file = |ending: &str| data(&format!("captures/{name}.{ending}"));
        let (Some(trace), Some(pages)) = (file("fiu.xz"), file("pages.zst")) else {
            continue;
        };
        let mut reader = TraceReader::open(trace, &strict()).unwrap();
        let mut batch = Batch::default();
        while reader.next_batch(&mut batch).unwrap() {}
        let pages = Pages::open(pages, LIMIT).unwrap();
        assert_eq!((pages.len(), reader.value_count()), (count, count as u32));
        let digests = (0..reader.value_count()).map(|value| reader.digest(value));
        pages.verify(digests).unwrap();
        let too_small = Pages::open(
            data(&format!("captures/{name}.pages.zst")).unwrap(),
            count as u64 * 4096 - 1,
        );
        assert!(too_small.unwrap_err().to_string().contains("more than"));
    }
}
