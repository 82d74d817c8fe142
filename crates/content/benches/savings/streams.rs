//! Streams of page writes: captures, disk images written one after another, and what stands for them where there are
//! none.

use std::collections::HashSet;
use std::path::Path;

use flashlore_testkit::data;
use flashlore_trace::{
    ContentModel, Op, ReadOptions, TraceReader, WorkloadOptions, for_each_access,
};

const PAGE_BYTES: usize = 4096;

const CAPTURES: [&str; 5] = [
    "sqlite-tpcb",
    "maildir",
    "django-upgrade",
    "sqlite-bytes",
    "upgrade-bytes",
];

/// What happens to a page. Equal values are equal content.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Write {
        page: u64,
        value: u64,
    },
    /// What a page held before the stream began: a write that does not count.
    Held {
        page: u64,
        value: u64,
    },
    Trim {
        page: u64,
    },
}

pub struct Stream {
    pub name: String,
    pub steps: Vec<Step>,
}

/// A number that looks random and is another for each number.
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// The captures that are at hand.
pub fn captures() -> Vec<Stream> {
    let captures = CAPTURES.iter();
    captures.filter_map(|name| captured(name)).collect()
}

fn captured(name: &str) -> Option<Stream> {
    let trace = data(&format!("captures/{name}.fiu.xz"))?;
    let reader = TraceReader::open(&trace, &ReadOptions::default()).expect("a trace");
    let options = WorkloadOptions::new(ContentModel::FromTrace);
    let (mut held, mut steps) = (Vec::new(), Vec::new());
    let mut touched = HashSet::new();
    for_each_access(vec![reader], &options, |access| {
        let pages = (access.unit..).map(|unit| u64::from(access.device) << 48 | unit);
        match (access.op, access.values) {
            (Op::Write, Some(values)) => {
                for (page, &value) in pages.zip(values) {
                    touched.insert(page);
                    let value = mixed(u64::from(value));
                    steps.push(Step::Write { page, value });
                }
            }
            (Op::Read, Some(values)) => {
                for (page, &value) in pages.zip(values) {
                    if touched.insert(page) {
                        let value = mixed(u64::from(value));
                        held.push((page, Step::Held { page, value }));
                    }
                }
            }
            (Op::Trim, _) => {
                steps.extend(
                    pages
                        .take(access.units as usize)
                        .map(|page| Step::Trim { page }),
                );
            }
            _ => {}
        }
        Ok(())
    })
    .expect("a trace");
    // What was there before lies in the order of addresses, as a copy of a disk would leave it.
    held.sort_by_key(|(page, _)| *page);
    let steps = held.into_iter().map(|(_, step)| step).chain(steps);
    Some(Stream {
        name: name.to_owned(),
        steps: steps.collect(),
    })
}

/// Images, each written in the order of addresses to a place of its own; zeros are not written.
pub fn images(name: &str, paths: &[String]) -> std::io::Result<Stream> {
    let mut steps = Vec::new();
    for (number, path) in (0u64..).zip(paths) {
        let bytes = std::fs::read(Path::new(path))?;
        for (unit, page) in (0u64..).zip(bytes.chunks(PAGE_BYTES)) {
            if page.iter().any(|&byte| byte != 0) {
                let mut value = [0; 8];
                value.copy_from_slice(&blake3::hash(page).as_bytes()[..8]);
                steps.push(Step::Write {
                    page: number << 32 | unit,
                    value: u64::from_le_bytes(value),
                });
            }
        }
    }
    Ok(Stream {
        name: name.to_owned(),
        steps,
    })
}

/// Numbers that are the same each time.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed << 32)
    }

    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        mixed(self.0)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// An image made of files, as the lengths of files are: most are short, most pages are in long ones.
struct Image {
    /// First values and pages of files.
    files: Vec<(u64, u64)>,
}

impl Image {
    fn new(pages: u64, draw: &mut Draw) -> Image {
        let mut files = Vec::new();
        let mut first = 0;
        while first < pages {
            // Half of the files have 1 page, a quarter up to 4, and so on to 1,024.
            let doublings = draw.next().trailing_zeros().min(5);
            let length = 1 + draw.below(1 << (2 * doublings));
            let length = length.min(pages - first);
            files.push((1 << 40 | first, length));
            first += length;
        }
        Image { files }
    }

    fn values(&self) -> Vec<u64> {
        let files = self.files.iter();
        let values = files.flat_map(|&(first, length)| first..first + length);
        values.map(mixed).collect()
    }
}

/// What stands for images: the same files written again and again, each time changed a little. All are made up.
pub fn clones(pages: u64) -> Vec<Stream> {
    let mut draw = Draw::new(1);
    let image = Image::new(pages, &mut draw);
    let values = image.values();
    let copy = |clone: u64, draw: &mut Draw| -> Vec<Step> {
        let changed = |value: u64, draw: &mut Draw| match draw.below(100) {
            0 => draw.next(),
            _ => value,
        };
        let units = (0u64..).zip(&values);
        let write = |(unit, &value): (u64, &u64)| Step::Write {
            page: clone << 32 | unit,
            value: changed(value, draw),
        };
        units.map(write).collect()
    };
    let native = |draw: &mut Draw| -> Vec<Step> {
        let _ = draw;
        let units = (0u64..).zip(&values);
        units
            .map(|(page, &value)| Step::Write { page, value })
            .collect()
    };
    let mut streams = Vec::new();
    let mut push = |name: &str, steps| {
        streams.push(Stream {
            name: name.to_owned(),
            steps,
        })
    };

    // One after the other, whole.
    let mut steps = native(&mut draw);
    for clone in 1..=8 {
        steps.extend(copy(clone, &mut draw));
    }
    push("clones", steps);

    // Runs of 1 to 2,048 pages, wherever they begin.
    let mut steps = native(&mut draw);
    for clone in 1..=8 {
        let whole = copy(clone, &mut draw);
        let mut written = 0;
        while written < whole.len() / 2 {
            let length = 1 + draw.below(2048).min(pages / 8) as usize;
            let first = draw.below(whole.len() as u64) as usize;
            let part = &whole[first..whole.len().min(first + length)];
            steps.extend_from_slice(part);
            written += part.len();
        }
    }
    push("parts", steps);

    // Four at a time, in requests of 32 pages.
    let mut steps = native(&mut draw);
    for group in 0..2 {
        let copies: Vec<Vec<Step>> = (0..4)
            .map(|clone| copy(1 + group * 4 + clone, &mut draw))
            .collect();
        for first in (0..values.len()).step_by(32) {
            for whole in &copies {
                steps.extend_from_slice(&whole[first..whole.len().min(first + 32)]);
            }
        }
    }
    push("at-once", steps);

    // After as much again that is of no use.
    let mut steps = native(&mut draw);
    steps.extend((0..pages).map(|unit| Step::Write {
        page: 1 << 60 | unit,
        value: mixed(1 << 50 | unit),
    }));
    for clone in 1..=8 {
        steps.extend(copy(clone, &mut draw));
    }
    push("after-others", steps);

    // The same files in another order, as another installation writes them.
    let mut steps = native(&mut draw);
    let mut order = image.files.clone();
    for clone in 1..=3u64 {
        order.sort_by_key(|(first, _)| mixed(first ^ clone << 50));
        let shuffled = Image {
            files: order.clone(),
        };
        let units = (0u64..).zip(shuffled.values());
        steps.extend(units.map(|(unit, value)| Step::Write {
            page: clone << 32 | unit,
            value,
        }));
    }
    push("other-order", steps);

    // Clones that are used: pages of all are overwritten, many with what others have, most with what nobody has.
    let mut steps = native(&mut draw);
    for clone in 1..=4 {
        steps.extend(copy(clone, &mut draw));
        for _ in 0..pages {
            let page = draw.below(clone + 1) << 32 | draw.below(pages);
            let value = match draw.below(4) {
                0 => values[draw.below(pages) as usize],
                1 => mixed(1 << 51 | draw.below(pages / 16)),
                _ => draw.next(),
            };
            steps.push(Step::Write { page, value });
        }
    }
    push("used", steps);
    streams
}
