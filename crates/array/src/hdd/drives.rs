//! Named drives.
//!
//! Each figure has a mark: `[P]` published, `[D]` derived from published figures, `[A]` assumed. `docs/hdd.md`
//! names the documents and says how the derived ones were derived.

use super::Time;
use super::cache::WriteCache;
use super::geometry::Zone;
use super::parameters::{Buffer, Overhead, Parameters, Positioning, Power, Seek};
use super::seek::SeekTimes;

/// The names of all drives, as [`named`] takes them.
pub const NAMES: [&str; 5] = [
    "barracuda-7200.7-160g",
    "constellation.2-1t",
    "constellation-es.3-4t",
    "cheetah-15k.7-300g",
    "cheetah-9lp-9g",
];

pub fn named(name: &str) -> Option<Parameters> {
    match name {
        "barracuda-7200.7-160g" => Some(barracuda_7200_7()),
        "constellation.2-1t" => Some(constellation_2()),
        "constellation-es.3-4t" => Some(constellation_es_3()),
        "cheetah-15k.7-300g" => Some(cheetah_15k_7()),
        "cheetah-9lp-9g" => Some(cheetah_9lp()),
        _ => None,
    }
}

/// 7200 and 15,000 turns a minute, in whole nanoseconds.
const TURN_7200: Time = 8_333_333;
const TURN_15000: Time = 4_000_000;

/// [A] What the controller takes, where nothing is known; the 0.2 ms are those of Constellation.2.
const OVERHEAD: Overhead = Overhead {
    hit: 50_000,
    read: 200_000,
    write: 200_000,
};

/// Seagate Barracuda 7200.7 with NCQ, 160 GB, SATA (ST3160827AS): a drive as in the I-CASH paper, which
/// says "Seagate SATA 160 GB" and no more.
fn barracuda_7200_7() -> Parameters {
    // [A] Switches. [A] 30 zones.
    Parameters {
        name: "barracuda-7200.7-160g",
        rotation: TURN_7200, // [P]
        heads: 4,            // [D] 80 GB a platter
        // [D] Outer tracks from 58 MB/s sustained, cylinders from the capacity; [A] inner tracks.
        zones: zones(TURN_7200, 1057, 506, 99_995, 1_000_000, 1_000_000),
        sectors: 312_581_808, // [D] of 160 GB
        // [P] 8.5 ms on average; [A] the others.
        reads: fitted(800_000, 8_500_000, 18_000_000, 1_000_000),
        writes: fitted(1_000_000, 9_500_000, 19_000_000, 1_000_000), // [A]
        overhead: OVERHEAD,
        bus_rate: 150_000_000,       // [P]
        buffer: buffer(16, 8 << 20), // [P] 8 MB; [A] segments
        write_cache: write_cache(4 << 20),
        power: Some(Power {
            idle: 7.5,    // [P]
            active: 12.0, // [P] "operating"
        }),
    }
}

/// Seagate Constellation.2 SAS, 1 TB, 2.5 inch (ST91000640SS): nearline, all seek times published.
fn constellation_2() -> Parameters {
    Parameters {
        name: "constellation.2-1t",
        rotation: TURN_7200, // [P]
        heads: 8,            // [P]
        // [P] 165,800 tracks a surface; [D] sectors from the capacity and the 84 to 163 MB/s of the heads.
        // [A] Switches, 30 zones.
        zones: zones(TURN_7200, 1944, 1002, 165_800, 900_000, 900_000),
        sectors: 1_953_525_168,                                  // [D] of 1 TB
        reads: fitted(230_000, 7_500_000, 17_060_000, 900_000),  // [P] seeks; [A] switch
        writes: fitted(440_000, 8_500_000, 18_080_000, 900_000), // [P] seeks; [A] switch
        overhead: OVERHEAD,                                      // [P] 0.2 ms; [A] that of a hit
        bus_rate: 600_000_000,                                   // [P]
        buffer: buffer(32, 64 << 20),                            // [A]
        write_cache: write_cache(16 << 20),
        power: None,
    }
}

/// Seagate Constellation ES.3 SAS, 4 TB, 3.5 inch (ST4000NM0023): nearline, both rates published.
fn constellation_es_3() -> Parameters {
    Parameters {
        name: "constellation-es.3-4t",
        rotation: TURN_7200, // [P]
        heads: 10,           // [P]
        // [P] 320,800 tracks a surface. [D] Sectors and switches from the capacity and from 83 to 175 MB/s
        // sustained. [A] 30 zones.
        zones: zones(TURN_7200, 3305, 1568, 320_800, 1_335_000, 1_335_000),
        sectors: 7_814_037_168, // [D] of 4 TB
        reads: fitted(230_000, 7_500_000, 17_060_000, 1_335_000), // [A] seeks of Constellation.2; [D] switch
        writes: fitted(440_000, 8_500_000, 18_080_000, 1_335_000), // [A] seeks of Constellation.2; [D] switch
        overhead: OVERHEAD,                                        // [A]
        bus_rate: 600_000_000,                                     // [P]
        buffer: buffer(32, 128 << 20),                             // [A]
        write_cache: write_cache(16 << 20),
        power: Some(Power {
            idle: 7.97,    // [D] 0.37 A at 5 V and 0.51 A at 12 V
            active: 11.86, // [D] random reads: 0.50 A at 5 V and 0.78 A at 12 V
        }),
    }
}

/// Seagate Cheetah 15K.7 SAS, 300 GB (ST3300657SS): 15,000 turns a minute.
fn cheetah_15k_7() -> Parameters {
    Parameters {
        name: "cheetah-15k.7-300g",
        rotation: TURN_15000, // [P]
        heads: 4,             // [A]
        // [D] Sectors from 122 to 204 MB/s sustained, cylinders from the capacity. [A] Switches, 30 zones.
        zones: zones(TURN_15000, 1754, 1049, 104_520, 400_000, 440_000),
        sectors: 585_937_500,                                   // [D] 300 GB
        reads: fitted(200_000, 3_400_000, 7_000_000, 400_000),  // [A]
        writes: fitted(440_000, 3_900_000, 7_500_000, 400_000), // [A]
        overhead: OVERHEAD,                                     // [A]
        bus_rate: 600_000_000,                                  // [P]
        buffer: buffer(32, 16 << 20),                           // [A]
        write_cache: write_cache(4 << 20),
        power: Some(Power {
            idle: 8.71,   // [D] 0.35 A at 5 V and 0.58 A at 12 V
            active: 12.9, // [D] random reads: 0.42 A at 5 V and 0.90 A at 12 V
        }),
    }
}

/// Seagate Cheetah 9LP, 9.1 GB (ST39102LW), with the parameters that were measured on it for DiskSim and
/// validated there. Its spare and defective sectors are left out.
fn cheetah_9lp() -> Parameters {
    // [P] Cylinders, sectors a track, skew of a head and of a cylinder in sectors.
    const ZONES: [(u32, u32, u32, u32); 11] = [
        (847, 254, 97, 133),
        (796, 245, 97, 133),
        (748, 238, 97, 117),
        (703, 227, 97, 116),
        (660, 217, 97, 108),
        (621, 209, 97, 108),
        (584, 201, 97, 108),
        (550, 189, 88, 94),
        (516, 181, 88, 93),
        (486, 174, 88, 93),
        (444, 167, 88, 80),
    ];
    // [P] Nineteen of the 106 points of the measured curve: cylinders, microseconds.
    const SEEKS: [(u32, Time); 19] = [
        (1, 831),
        (2, 1_003),
        (5, 1_268),
        (10, 1_448),
        (20, 1_534),
        (50, 1_804),
        (100, 2_145),
        (200, 2_517),
        (400, 3_051),
        (600, 3_399),
        (800, 3_823),
        (1_000, 4_118),
        (1_500, 4_757),
        (2_000, 5_282),
        (3_000, 6_345),
        (4_000, 7_419),
        (5_000, 8_492),
        (6_000, 9_698),
        (6_894, 10_627),
    ];
    /// [P] Additional settling of a write, and the head switch.
    const SETTLE: Time = 461_000;
    const HEAD_SWITCH: Time = 30_000;
    let seek = |more| Seek::Measured(SEEKS.map(|(d, time)| (d, time * 1_000 + more)).to_vec());
    let zone = |(cylinders, sectors_per_track, track_skew, cylinder_skew)| Zone {
        cylinders,
        sectors_per_track,
        track_skew,
        cylinder_skew,
    };
    Parameters {
        name: "cheetah-9lp-9g",
        rotation: 5_973_121, // [P] 10,045 turns a minute
        heads: 12,           // [P]
        zones: ZONES.map(zone).to_vec(),
        sectors: 17_783_240, // [P]
        reads: Positioning {
            seek: seek(0),
            head_switch: HEAD_SWITCH,
        },
        writes: Positioning {
            seek: seek(SETTLE),
            head_switch: HEAD_SWITCH + SETTLE,
        },
        overhead: Overhead {
            hit: 66_000,    // [P] after a read
            read: 283_620,  // [P] after a read
            write: 906_920, // [P] after a read
        },
        bus_rate: 80_000_000, // [A] Ultra2 Wide SCSI
        buffer: Buffer {
            segments: 3,          // [P]
            segment_sectors: 561, // [P]
            read_ahead: 561,      // [P]
        },
        write_cache: write_cache(512 << 10),
        power: None,
    }
}

/// Seek times and the change of head.
fn fitted(
    track_to_track: Time,
    average: Time,
    full_stroke: Time,
    head_switch: Time,
) -> Positioning {
    Positioning {
        seek: Seek::Fitted(SeekTimes {
            track_to_track,
            average,
            full_stroke,
        }),
        head_switch,
    }
}

/// [A] Segments of equal size, of which three quarters are read ahead.
fn buffer(segments: u32, bytes: u32) -> Buffer {
    let segment_sectors = bytes / 512 / segments;
    Buffer {
        segments,
        segment_sectors,
        read_ahead: segment_sectors / 4 * 3,
    }
}

/// [A] A write cache of so many bytes, 256 runs, destaged a megabyte at a time.
fn write_cache(bytes: u32) -> WriteCache {
    WriteCache {
        sectors: bytes / 512,
        runs: 256,
        piece: (1 << 20) / 512,
    }
}

/// [A] Thirty zones of equally many cylinders, whose tracks become shorter evenly. The skew covers the
/// change of head and of cylinder given in nanoseconds, so that a rotation is not lost.
fn zones(
    rotation: Time,
    outermost: u32,
    innermost: u32,
    cylinders: u32,
    head_change: Time,
    cylinder_change: Time,
) -> Vec<Zone> {
    const ZONES: u32 = 30;
    let last = ZONES - 1;
    let zone = |number| {
        let sectors_per_track =
            (outermost * (last - number) + innermost * number + last / 2) / last;
        // Two nanoseconds more: slots begin at whole ones.
        let skew =
            |time: Time| ((time + 2) * u64::from(sectors_per_track)).div_ceil(rotation) as u32;
        let first = |number| u64::from(cylinders) * u64::from(number) / u64::from(ZONES);
        Zone {
            cylinders: (first(number + 1) - first(number)) as u32,
            sectors_per_track,
            track_skew: skew(head_change),
            cylinder_skew: skew(cylinder_change),
        }
    };
    (0..ZONES).map(zone).collect()
}
