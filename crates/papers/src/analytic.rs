//! What the papers compute by hand, as functions that a definition can call.
//!
//! Where the simulator has the same arithmetic in its core or in its configuration, it is asked; what is
//! left is DeltaFTL's model of programs and collections (section 4 there). Symbols: `pc`, share of the
//! page writes that become deltas; `rc`, their mean size as a share of a page; `pow`, share of
//! deltas that are overwritten later.

use flashlore_array::icash::heatmap::Heatmap;
use flashlore_content::history::{PAPER_ENTRY_BYTES, protection_window};
use flashlore_sim::config::{Settings, SystemConfig, load_device, load_system};
use flashlore_sim::engine::build::viability_bound;

/// Device and system whose times the functions of DeltaFTL use.
const DEVICE: &str = "deltaftl-64g";
const SYSTEM: &str = "delta-ftl";
const GIB: f64 = (1u64 << 30) as f64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// `encode_us(mhz)`: time to encode a page.
    EncodeUs,
    /// `decode_us(mhz)`: time to decode one.
    DecodeUs,
    /// `viable_rc(mhz)`: the largest mean of R_c at which writes take no longer for being encoded.
    ViableRc,
    /// `foreground(pc, rc)`: programs for the host over its page writes.
    Foreground,
    /// `whole_collections(kept, pc, rc)`: collections over those without deltas where victims hold
    /// whole pages and the blocks with invalid pages are `kept` times as many.
    WholeCollections,
    /// `log_collections(writes, pc, rc, pow, pages)`: collections of blocks of so many pages where victims
    /// hold deltas.
    LogCollections,
    /// `collection_us(erase, program, pages, gain)`: time of a collection that gains so many pages of a
    /// block.
    CollectionUs,
    /// `saved_pages(overwrites, rc)`: pages that storing so many overwrites of a page as deltas saves.
    SavedPages,
    /// `window(total, live, written, during)`: how far back a device of `total` GiB with `live` current
    /// ones goes, `written` coming `during` so long.
    Window,
    /// `history_mb(entries)`: millions of bytes that BVSSD's entries take.
    HistoryMb,
    /// `popularity(lba)`: of the block at 1 to 4 after the accesses of I-CASH's Table 1.
    Popularity,
    /// `space(lba)`: blocks that the four of I-CASH's Table 2 take if that one is the reference.
    Space,
}

/// The blocks of I-CASH's Tables 1 and 2, AB, CD, AD and BD, by what their halves hold.
const TABLE_1: [[u8; 2]; 4] = [[0, 1], [2, 3], [0, 3], [1, 3]];

impl Formula {
    /// The one of that name, with the number of its arguments.
    pub fn named(name: &str) -> Option<(Self, usize)> {
        Some(match name {
            "encode_us" => (Self::EncodeUs, 1),
            "decode_us" => (Self::DecodeUs, 1),
            "viable_rc" => (Self::ViableRc, 1),
            "foreground" => (Self::Foreground, 2),
            "whole_collections" => (Self::WholeCollections, 3),
            "log_collections" => (Self::LogCollections, 5),
            "collection_us" => (Self::CollectionUs, 4),
            "saved_pages" => (Self::SavedPages, 2),
            "window" => (Self::Window, 4),
            "history_mb" => (Self::HistoryMb, 1),
            "popularity" => (Self::Popularity, 1),
            "space" => (Self::Space, 1),
            _ => return None,
        })
    }

    /// Its value; not a number where there is none. `of` are as many arguments as it has.
    pub fn value(self, of: &[f64]) -> f64 {
        let us = |ns: u64| ns as f64 / 1e3;
        match (self, of) {
            (Self::EncodeUs, [mhz]) => {
                delta_ftl(*mhz).map_or(f64::NAN, |s| us(s.codec.encode_time().0))
            }
            (Self::DecodeUs, [mhz]) => {
                delta_ftl(*mhz).map_or(f64::NAN, |s| us(s.codec.decode_time().0))
            }
            (Self::ViableRc, [mhz]) => viable(*mhz).unwrap_or(f64::NAN),
            (Self::Foreground, [pc, rc]) => 1.0 - pc * (1.0 - rc),
            (Self::WholeCollections, [kept, pc, rc]) => kept * (1.0 + pc * rc / (1.0 - pc)),
            (Self::LogCollections, [writes, pc, rc, pow, pages]) => {
                writes * (1.0 - pc + pc * rc) / (pow * pages)
            }
            (Self::CollectionUs, [erase, program, pages, gain]) => erase + program * (pages - gain),
            (Self::SavedPages, [overwrites, rc]) => overwrites * (1.0 - rc),
            (Self::Window, [total, live, written, during]) => {
                let bytes = |gib: &f64| (gib * GIB) as u64;
                let window =
                    protection_window(bytes(total), bytes(live), bytes(written), *during as u64);
                window.map_or(f64::NAN, |window| window as f64)
            }
            (Self::HistoryMb, [entries]) => entries * PAPER_ENTRY_BYTES as f64 / 1e6,
            (Self::Popularity, [lba]) => of_table_1(*lba).map_or(f64::NAN, popularity),
            (Self::Space, [lba]) => of_table_1(*lba).map_or(f64::NAN, space),
            _ => f64::NAN,
        }
    }
}

/// The system with its processor at so many MHz.
fn delta_ftl(mhz: f64) -> Option<SystemConfig> {
    let settings = Settings::parse(&[format!("codec.mhz={mhz}")]).ok()?;
    Some(load_system(SYSTEM, &settings).ok()?.config)
}

fn viable(mhz: f64) -> Option<f64> {
    let device = load_device(DEVICE, &Settings::default()).ok()?;
    Some(viability_bound(&delta_ftl(mhz)?, &device.config))
}

fn of_table_1(lba: f64) -> Option<[u8; 2]> {
    let position = TABLE_1.iter().zip(1u8..);
    let mut found = position.filter(|(_, number)| f64::from(*number) == lba);
    found.next().map(|(block, _)| *block)
}

/// As the heatmap of the array counts it.
fn popularity(block: [u8; 2]) -> f64 {
    let mut heatmap = Heatmap::new(2, 4);
    TABLE_1.iter().for_each(|block| heatmap.record(block));
    heatmap.popularity(&block) as f64
}

/// A half is stored unless the reference has it at the same place.
fn space(reference: [u8; 2]) -> f64 {
    let stored = TABLE_1.iter().map(|block| {
        let differing = block.iter().zip(reference).filter(|&(a, b)| *a != b);
        match *block == reference {
            true => 1.0,
            false => differing.count() as f64 / 2.0,
        }
    });
    stored.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, of: &[f64]) -> f64 {
        let (formula, arguments) = Formula::named(name).unwrap();
        assert_eq!(arguments, of.len());
        formula.value(of)
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn deltaftls_model_by_hand() {
        // A grid of 1 - Pc (1 - Rc).
        let grid = [
            (0.3, [0.85, 0.805, 0.76]),
            (0.5, [0.75, 0.675, 0.60]),
            (0.7, [0.65, 0.545, 0.44]),
            (0.9, [0.55, 0.415, 0.28]),
        ];
        for (pc, row) in grid {
            for (rc, expected) in [0.5, 0.35, 0.2].into_iter().zip(row) {
                near(value("foreground", &[pc, rc]), expected);
            }
        }
        // A million writes, half of them differences of a fifth of a page, 80 % overwritten, 64 pages.
        let log = value("log_collections", &[1e6, 0.5, 0.2, 0.8, 64.0]);
        near(log, 600_000.0 / 51.2);
        near(
            value("collection_us", &[1500.0, 200.0, 64.0, 0.8 * 64.0]),
            4060.0,
        );
        // To reach .58 at Rc = .5 and Pc = .5, the blocks must become .387 times as many.
        near(value("whole_collections", &[0.58 / 1.5, 0.5, 0.5]), 0.58);
    }

    #[test]
    fn limits_of_the_model() {
        // Without differences nothing changes; those of no size cost nothing; those of a whole page take
        // more collections than there were.
        near(value("whole_collections", &[1.0, 0.0, 0.5]), 1.0);
        near(value("whole_collections", &[0.7, 0.5, 0.0]), 0.7);
        near(value("whole_collections", &[1.0, 0.5, 1.0]), 2.0);
        for pc in [0.1, 0.5, 0.9] {
            assert!(value("whole_collections", &[1.0, pc, 0.5]) >= 1.0);
            // (1 - Pc + Pc Rc) / (1 - Pc) is the same number.
            let ratio = value("foreground", &[pc, 0.5]) / (1.0 - pc);
            near(value("whole_collections", &[1.0, pc, 0.5]), ratio);
        }
    }

    #[test]
    fn what_the_simulator_is_asked() {
        assert!((value("encode_us", &[619.0]) - 43.96).abs() < 0.01);
        assert!((value("decode_us", &[304.0]) - 22.16).abs() < 0.01);
        assert!((value("viable_rc", &[304.0]) - 0.5524).abs() < 1e-3);
        assert_eq!(value("window", &[60.0, 0.0, 15.0, 12.0]), 48.0);
        near(value("history_mb", &[3_932_160.0]), 94.371_84);
        let tables = [(3.0, 3.5), (4.0, 3.0), (5.0, 2.5), (4.0, 3.0)];
        for (lba, (popularity, space)) in (1..=4).map(f64::from).zip(tables) {
            near(value("popularity", &[lba]), popularity);
            near(value("space", &[lba]), space);
        }
        assert!(value("space", &[5.0]).is_nan());
        assert!(value("encode_us", &[-1.0]).is_nan());
    }
}
