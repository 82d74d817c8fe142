//! Where a sector lies: zones, cylinders, heads, slots, and the angle of each.
//!
//! * Sectors of 512 bytes are numbered along a track, then over the heads of a cylinder, then over the
//!   cylinders from the outermost inwards.
//! * A track is divided into *slots*, one a sector. Slot `s` of `n` begins `floor(s P / n)` nanoseconds after
//!   the index mark, where `P` is the duration of a rotation. At instant `t` the angle is `t mod P`: all
//!   surfaces turn together and the mark passes at time 0.
//! * Sector 0 of a track lies some slots further on than that of the track before it: the *skew* of a
//!   change of head, or of cylinder. In the first track of a zone it is slot 0.
//!
//! Invariants: every sector has one place; the slots of a track cover a rotation without gap or overlap.

use super::Time;

pub const SECTOR_BYTES: u64 = 512;

/// Neighbouring cylinders whose tracks hold equally many sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    pub cylinders: u32,
    pub sectors_per_track: u32,
    /// Slots by which the next track of the same cylinder begins later.
    pub track_skew: u32,
    /// Slots by which the first track of the next cylinder begins later.
    pub cylinder_skew: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track {
    /// Counted from the outermost.
    pub cylinder: u32,
    pub head: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectorPlace {
    pub track: Track,
    /// Its number along the track.
    pub sector: u32,
    /// Its slot: the number plus the skew of the track.
    pub slot: u32,
    /// Sectors, and so slots, of the track.
    pub sectors_per_track: u32,
}

#[derive(Debug, Clone)]
struct Zoned {
    first_lba: u64,
    first_cylinder: u32,
    zone: Zone,
}

#[derive(Debug, Clone)]
pub(super) struct Geometry {
    rotation: Time,
    heads: u32,
    zones: Vec<Zoned>,
}

impl Geometry {
    /// A disk that turns once in `rotation` nanoseconds. The caller has checked that nothing is zero
    /// ([`Parameters`](super::Parameters) does).
    pub(super) fn new(rotation: Time, heads: u32, zones: &[Zone]) -> Self {
        let (mut first_lba, mut first_cylinder) = (0, 0);
        let zones = zones.iter().map(|&zone| {
            let zoned = Zoned {
                first_lba,
                first_cylinder,
                zone,
            };
            first_lba += sectors(heads, &zone);
            first_cylinder += zone.cylinders;
            zoned
        });
        Geometry {
            rotation,
            heads,
            zones: zones.collect(),
        }
    }

    /// Where this sector lies, which must be one of the disk's.
    #[inline]
    pub fn locate(&self, lba: u64) -> SectorPlace {
        let after = self.zones.partition_point(|zoned| zoned.first_lba <= lba);
        let Zoned {
            first_lba,
            first_cylinder,
            zone,
        } = &self.zones[after - 1];
        let (heads, per_track) = (u64::from(self.heads), u64::from(zone.sectors_per_track));
        let track = (lba - first_lba) / per_track;
        let sector = (lba - first_lba) % per_track;
        let (cylinder, head) = (track / heads, track % heads);
        let head_skew = u64::from(zone.track_skew);
        let skew = cylinder * ((heads - 1) * head_skew + u64::from(zone.cylinder_skew));
        SectorPlace {
            track: Track {
                cylinder: first_cylinder + cylinder as u32,
                head: head as u32,
            },
            sector: sector as u32,
            slot: ((sector + skew + head * head_skew) % per_track) as u32,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// When slot `slot` of a track with so many begins, counted from an index mark; slots from
    /// `sectors_per_track` on are those of the next rotation.
    #[inline]
    pub fn begins(&self, slot: u64, sectors_per_track: u32) -> Time {
        slot * self.rotation / u64::from(sectors_per_track)
    }

    /// The first instant not before `from` at which the place is under its head.
    #[inline]
    pub fn under_head(&self, place: &SectorPlace, from: Time) -> Time {
        let angle = from % self.rotation;
        let begins = self.begins(u64::from(place.slot), place.sectors_per_track);
        match begins >= angle {
            true => from + (begins - angle),
            false => from + (begins + self.rotation - angle),
        }
    }

    /// How long so many sectors of one track take from this place on.
    #[inline]
    pub fn passing(&self, place: &SectorPlace, sectors: u64) -> Time {
        let slot = u64::from(place.slot);
        self.begins(slot + sectors, place.sectors_per_track)
            - self.begins(slot, place.sectors_per_track)
    }

    /// How many sectors have passed after this time from the beginning of a place, which is at most a
    /// rotation.
    #[inline]
    pub fn passed(&self, place: &SectorPlace, time: Time) -> u64 {
        let slot = u64::from(place.slot);
        let after_mark = self.begins(slot, place.sectors_per_track) + time;
        // The slots that have ended so long after the mark.
        let slots = (after_mark + 1) * u64::from(place.sectors_per_track);
        slots.div_ceil(self.rotation) - 1 - slot
    }
}

/// Sectors of a zone on a disk with so many heads.
pub(super) fn sectors(heads: u32, zone: &Zone) -> u64 {
    u64::from(heads) * u64::from(zone.cylinders) * u64::from(zone.sectors_per_track)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(cylinders: u32, sectors_per_track: u32, track_skew: u32, cylinder_skew: u32) -> Zone {
        Zone {
            cylinders,
            sectors_per_track,
            track_skew,
            cylinder_skew,
        }
    }

    #[test]
    fn sectors_go_along_tracks_then_heads_then_cylinders_with_skew() {
        let geometry = Geometry::new(1_000, 2, &[zone(2, 5, 1, 2), zone(1, 3, 2, 1)]);
        let places: Vec<_> = (0..26).map(|lba| geometry.locate(lba)).collect();
        let tracks: Vec<_> = places.iter().step_by(5).take(4).collect();
        let found = tracks.iter().map(|p| (p.track.cylinder, p.track.head));
        assert_eq!(found.collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        // Slot of sector 0: +1 for the head, +2 for the cylinder, +1 for the head.
        let slots: Vec<_> = tracks.iter().map(|p| p.slot).collect();
        assert_eq!(slots, [0, 1, 3, 4]);
        let last = places[25];
        let track = Track {
            cylinder: 2,
            head: 1,
        };
        assert_eq!((last.track, last.sector, last.slot), (track, 2, 1));
        for (lba, place) in places.iter().enumerate() {
            let same = places.iter().filter(|other| *other == place);
            assert_eq!(same.count(), 1, "sector {lba} shares its place");
        }
    }

    #[test]
    fn slots_cover_a_rotation_and_are_counted_as_they_end() {
        let geometry = Geometry::new(997, 1, &[zone(1, 7, 0, 0)]);
        assert_eq!(geometry.begins(7, 7), 997);
        for lba in 0..7 {
            let place = geometry.locate(lba);
            for time in 0..=997 {
                let passed = geometry.passed(&place, time);
                assert!(geometry.passing(&place, passed) <= time);
                assert!(geometry.passing(&place, passed + 1) > time);
            }
        }
    }

    #[test]
    fn a_place_is_under_its_head_once_a_rotation() {
        let geometry = Geometry::new(997, 1, &[zone(1, 7, 0, 0)]);
        let place = geometry.locate(3);
        let begins = geometry.begins(3, 7);
        for from in 0..3_000 {
            let at = geometry.under_head(&place, from);
            assert!(at >= from && at < from + 997 && at % 997 == begins);
        }
    }
}
