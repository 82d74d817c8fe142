//! Reads that displace, at two sizes of everything: what a request costs should hardly grow with the number of
//! virtual blocks.

use cpu_time::ThreadTime;
use flashlore_array::Element;
use flashlore_array::icash::{Options, lba};

use crate::contents::{below, compressible, numbers};
use crate::requests::array;
use crate::{Row, Table};

pub fn table(full: bool) -> Table {
    let sizes = if full { [10_000, 100_000] } else { [300, 600] };
    let rows = sizes.into_iter().flat_map(|size| {
        [
            row(format!("{size} virtual blocks, reads"), size, full, 0),
            row(format!("{size} virtual blocks, half writes"), size, full, 2),
        ]
    });
    Table {
        what: "requests anywhere, which displace others",
        rows: rows.collect(),
        control: 0,
    }
}

/// So many virtual blocks, a tenth as many data blocks, and a fifth more blocks. Nothing is alike.
fn row(name: String, virtual_blocks: u64, full: bool, writes: u64) -> Row {
    Row {
        name,
        run: Box::new(move |hasher| {
            let blocks = virtual_blocks * 6 / 5;
            let options = Options::new(virtual_blocks as u32, virtual_blocks as u32 * 8);
            let mut element = array(blocks as u32, virtual_blocks as u32 / 10, &options);
            for block in 0..blocks {
                let content = compressible(block);
                element.write(lba(0, block), &content).expect("a write");
                element.work_off();
            }
            let mut numbers = numbers(3);
            let count = if full { 20_000 } else { 500 };
            let mut page = [0; 4096];
            let begin = ThreadTime::now();
            for number in 0..count {
                let block = lba(0, below(&mut numbers, blocks));
                if writes > 0 && number % writes == 0 {
                    page[..8].copy_from_slice(&number.to_le_bytes());
                    element.write(block, &page).expect("a write");
                } else {
                    element.read(block, &mut page).expect("a read");
                }
                element.work_off();
            }
            let time = begin.elapsed();
            hasher.update(format!("{:?}", element.counters()).as_bytes());
            hasher.update(&page);
            (time, count)
        }),
    }
}
