//! One scan of 4,000 blocks that were just written, of which it finds none or most to be alike.

use cpu_time::ThreadTime;
use flashlore_array::Element;
use flashlore_array::icash::parameters::DELTA_LIMIT;
use flashlore_array::icash::{Options, Similarity, lba};
use flashlore_delta::{Codec, Encoder, Page};
use rand_core::Rng;

use crate::contents::{content, numbers};
use crate::requests::array;
use crate::{Row, Table};

/// The control is the compression of each of the blocks that resemble each other.
pub fn table(full: bool) -> Table {
    let blocks = if full { 4000 } else { 200 };
    let noise = |block: u64| {
        let mut page = [0; 4096];
        numbers(block).fill_bytes(&mut page);
        page
    };
    let alike: Vec<Page> = (0..blocks).map(|block| content(block, 0)).collect();
    let mut rows = vec![compression(alike.clone())];
    for (what, pages) in [
        ("among noise", (0..blocks).map(noise).collect()),
        ("among families", alike),
    ] {
        for (how, similarity) in [
            ("signatures", Similarity::Signatures),
            ("super-features", Similarity::SuperFeatures),
        ] {
            rows.push(row(format!("{how}, {what}"), pages.clone(), similarity));
        }
    }
    Table {
        what: "a scan, for each block it looks at",
        rows,
        control: 0,
    }
}

fn compression(pages: Vec<Page>) -> Row {
    Row {
        name: "compression of each".into(),
        run: Box::new(move |hasher| {
            let mut encoder = Encoder::new();
            let mut bytes = 0;
            let begin = ThreadTime::now();
            for page in &pages {
                let encoded = encoder.alone(Codec::default(), page, DELTA_LIMIT);
                bytes += encoded.map_or(0, <[u8]>::len);
            }
            let time = begin.elapsed();
            hasher.update(&bytes.to_le_bytes());
            (time, pages.len() as u64)
        }),
    }
}

fn row(name: String, pages: Vec<Page>, similarity: Similarity) -> Row {
    Row {
        name,
        run: Box::new(move |hasher| {
            let count = pages.len() as u64;
            let options = Options {
                similarity,
                scan_every: count + 1,
                scan_blocks: pages.len(),
                flush_blocks: 1 << 10,
                ..Options::new(2 * count as u32, 64 * count as u32)
            };
            let mut element = array(count as u32 + 1, count as u32 + 10, &options);
            for (block, page) in pages.iter().enumerate() {
                element.write(lba(0, block as u64), page).expect("a write");
                element.work_off();
            }
            // A read of a block never written, which itself does nothing, and then the scan.
            let begin = ThreadTime::now();
            element.read(lba(0, count), &mut [0; 4096]).expect("a read");
            element.work_off();
            let time = begin.elapsed();
            assert_eq!(element.counters().scans, 1);
            hasher.update(format!("{:?}", element.counters()).as_bytes());
            (time, count)
        }),
    }
}
