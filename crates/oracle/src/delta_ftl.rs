//! What DeltaFTL (EuroSys 2012) decides, on a device too large to collect.
//!
//! A page is mapped to its full copy, or, flagged, to its *base*: the full copy that its one live
//! delta is decoded with. Where the delta is, is asked of a table keyed by the base's address, as the
//! paper prints it; a delta that the table does not know is in the page in RAM that deltas gather in.
//! Addresses are given in the order of programming and never used again.
//!
//! A write: (1) it is counted; (2) a page that is not mapped, not write-hot or read-hot is stored
//! whole, and so is one without a delta while as many pages as may have one; (3) so is one whose delta against the *base* is longer than the limit; (4) otherwise the
//! page's older delta dies, in RAM or on flash; (5) if the new one does not fit, the page in RAM is
//! programmed; (6) the new one is appended. A whole copy kills the delta and its base.
//!
//! The page in RAM: 4 bytes of header, 8 bytes for each slot, the deltas; no delta straddles two pages.
//!
//! Baseline mode: the mean length over each full window of encoded writes is compared with a bound; a
//! delta that fits in no page counts as a page. While the mean is above, one candidate in so many is
//! encoded, and the others are stored whole unseen.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a packed page's header.
pub const HEADER_BYTES: usize = 4;
/// Bytes of a slot's entry in the header.
pub const SLOT_BYTES: usize = 8;

/// When encoding is bypassed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// The longest mean, in bytes.
    pub most_bytes: usize,
    /// Encoded writes of a window.
    pub window: u64,
    /// In baseline mode one candidate in so many is encoded.
    pub probe: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaFtlRules {
    /// Writes since the last scan that make a page write-hot; `None` for any number of writes.
    pub hot_writes: Option<u64>,
    /// Reads since the last scan that make it read-hot; `None` for any number of reads.
    pub hot_reads: Option<u64>,
    /// The longest delta that is stored, in bytes.
    pub most_bytes: usize,
    /// The most pages that may have a delta, each of which keeps a base.
    pub most_bases: usize,
    /// When encoding is bypassed; `None` for never.
    pub baseline: Option<Baseline>,
}

/// Why a delta was merged with its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The page is read often.
    ReadHot,
    /// The page is not written often any more.
    WriteCold,
}

/// A flash page is programmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeltaEvent {
    /// A logical page is stored whole for a host write.
    Whole(u64),
    /// Deltas are stored together, of these logical pages in the order of their slots.
    Packed(Vec<u64>),
    /// A logical page is stored whole again.
    Merged(u64, Why),
}

/// What reading a page took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<V> {
    pub value: V,
    /// Flash pages read: the full copy or the base, and the delta's page unless that is in RAM.
    pub flash_reads: u64,
    pub delta: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeltaTotals {
    /// Writes that were encoded to see how long that is, or would have been outside baseline mode.
    pub candidates: u64,
    /// Of them, those not encoded in baseline mode.
    pub bypassed: u64,
    pub deltas: u64,
    /// Their bytes, without slots.
    pub delta_bytes: u64,
    pub base_reads: u64,
}

#[derive(Debug, Clone, Copy)]
struct DeltaSlot<V> {
    lpn: u64,
    base: u64,
    length: usize,
    value: V,
}

#[derive(Debug, Clone)]
enum Stored<V> {
    Full { lpn: u64, value: V },
    Packed(Vec<DeltaSlot<V>>),
}

#[derive(Debug, Clone, Copy)]
struct MapEntry {
    flag: bool,
    address: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    writes: u64,
    reads: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Viability {
    bytes: u64,
    encoded: u64,
    baseline: bool,
    passed: u64,
}

/// DeltaFTL without collection. `length` answers the bytes of the delta from a base value to a new one.
pub struct DeltaFtl<V, L> {
    rules: DeltaFtlRules,
    length: L,
    map: BTreeMap<u64, MapEntry>,
    /// Base address -> packed page.
    deltas: BTreeMap<u64, u64>,
    buffer: Vec<DeltaSlot<V>>,
    counts: BTreeMap<u64, Counts>,
    cold: BTreeSet<u64>,
    flash: BTreeMap<u64, Stored<V>>,
    viability: Viability,
    events: Vec<DeltaEvent>,
    totals: DeltaTotals,
}

impl<V: Copy + PartialEq, L: Fn(V, V) -> usize> DeltaFtl<V, L> {
    pub fn new(rules: DeltaFtlRules, length: L) -> Self {
        DeltaFtl {
            rules,
            length,
            map: BTreeMap::new(),
            deltas: BTreeMap::new(),
            buffer: Vec::new(),
            counts: BTreeMap::new(),
            cold: BTreeSet::new(),
            flash: BTreeMap::new(),
            viability: Viability::default(),
            events: Vec::new(),
            totals: DeltaTotals::default(),
        }
    }

    pub fn write(&mut self, lpn: u64, value: V) {
        self.counts.entry(lpn).or_default().writes += 1;
        let dispatched = self.is_write_hot(lpn) && !self.is_read_hot(lpn);
        let has_room = self.is_delta(lpn) || self.bases() < self.rules.most_bases;
        let entry = self
            .map
            .get(&lpn)
            .copied()
            .filter(|_| dispatched && has_room);
        let Some(entry) = entry else {
            return self.write_whole(lpn, value);
        };
        match self.encode(entry.address, value) {
            Some(length) => self.write_delta(lpn, entry.address, length, value),
            None => self.write_whole(lpn, value),
        }
    }

    /// Reads a logical page; `None` if it is not mapped. Mapped pages count the read.
    pub fn read(&mut self, lpn: u64) -> Option<Read<V>> {
        let entry = *self.map.get(&lpn)?;
        self.counts.entry(lpn).or_default().reads += 1;
        Some(self.look_up(lpn, entry))
    }

    /// Merges a page that the read before has made read-hot; answers whether it did.
    pub fn merge_if_read_hot(&mut self, lpn: u64) -> bool {
        let due = self.is_read_hot(lpn) && self.is_delta(lpn);
        if due {
            self.merge(lpn, Why::ReadHot);
        }
        due
    }

    /// Unmaps a logical page and forgets its counts.
    pub fn trim(&mut self, lpn: u64) {
        if let Some(entry) = self.map.remove(&lpn) {
            self.drop_delta(lpn, entry);
        }
        self.counts.remove(&lpn);
    }

    /// The periodic scan: lists the pages in delta form that are not write-hot and begins all counts anew.
    pub fn scan(&mut self) {
        let flagged = self.map.iter().filter(|(_, entry)| entry.flag);
        let cold: BTreeSet<u64> = flagged
            .map(|(&lpn, _)| lpn)
            .filter(|&lpn| !self.is_write_hot(lpn))
            .collect();
        self.cold = cold;
        self.counts.clear();
    }

    /// The pages that the scan has listed, without those that left delta form or became write-hot again.
    pub fn cold(&self) -> BTreeSet<u64> {
        let listed = self.cold.iter().copied();
        listed
            .filter(|&lpn| self.is_delta(lpn) && !self.is_write_hot(lpn))
            .collect()
    }

    /// Merges one of [`DeltaFtl::cold`]; answers the flash pages read for it, `None` if it is none of them.
    pub fn merge_cold(&mut self, lpn: u64) -> Option<u64> {
        let entry = *self.map.get(&lpn).filter(|_| self.cold().contains(&lpn))?;
        let flash_reads = self.look_up(lpn, entry).flash_reads;
        self.merge(lpn, Why::WriteCold);
        Some(flash_reads)
    }

    /// Programs the page in RAM if there is anything in it.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let slots = std::mem::take(&mut self.buffer);
        self.events.push(DeltaEvent::Packed(
            slots.iter().map(|slot| slot.lpn).collect(),
        ));
        let bases: Vec<u64> = slots.iter().map(|slot| slot.base).collect();
        let address = self.program(Stored::Packed(slots));
        for base in bases {
            self.deltas.insert(base, address);
        }
    }

    /// The programs since the last call, in order.
    pub fn take_events(&mut self) -> Vec<DeltaEvent> {
        std::mem::take(&mut self.events)
    }

    pub fn totals(&self) -> DeltaTotals {
        self.totals
    }

    pub fn is_delta(&self, lpn: u64) -> bool {
        self.map.get(&lpn).is_some_and(|entry| entry.flag)
    }

    /// The bases that deltas keep.
    pub fn bases(&self) -> usize {
        self.map.values().filter(|entry| entry.flag).count()
    }

    /// Recounts the invariants: a flagged page has one live delta, in RAM or where the table says; the
    /// table has nothing else; the page in RAM fits a page.
    ///
    /// # Panics
    /// On the first contradiction.
    pub fn check(&self) {
        let mut keyed = 0;
        for (&lpn, entry) in &self.map {
            let Stored::Full { lpn: owner, .. } = &self.flash[&entry.address] else {
                panic!("LPN {lpn} is mapped to a packed page");
            };
            assert_eq!(*owner, lpn, "LPN {lpn} is mapped to a page of another");
            let buffered = self.buffer.iter().filter(|slot| slot.lpn == lpn).count();
            let stored = usize::from(self.deltas.contains_key(&entry.address));
            assert_eq!(buffered + stored, usize::from(entry.flag), "LPN {lpn}");
            keyed += stored;
        }
        assert_eq!(keyed, self.deltas.len(), "a delta without a page");
        assert!(self.buffer.iter().all(|slot| self.is_delta(slot.lpn)));
        assert!(self.buffered_bytes() <= PAGE_BYTES);
    }

    fn counted(&self, lpn: u64) -> Counts {
        self.counts.get(&lpn).copied().unwrap_or_default()
    }

    fn is_write_hot(&self, lpn: u64) -> bool {
        let writes = self.counted(lpn).writes;
        self.rules.hot_writes.is_some_and(|hot| writes >= hot)
    }

    fn is_read_hot(&self, lpn: u64) -> bool {
        let reads = self.counted(lpn).reads;
        self.rules.hot_reads.is_some_and(|hot| reads >= hot)
    }

    /// The length of a delta against a base; `None` if it is over the limit, or not looked at.
    fn encode(&mut self, base: u64, value: V) -> Option<usize> {
        self.totals.candidates += 1;
        if let Some(rule) = self.rules.baseline.filter(|_| self.viability.baseline) {
            self.viability.passed += 1;
            if self.viability.passed < rule.probe {
                self.totals.bypassed += 1;
                return None;
            }
            self.viability.passed = 0;
        }
        self.totals.base_reads += 1;
        let length = (self.length)(self.full(base), value);
        let fits = HEADER_BYTES + SLOT_BYTES + length <= PAGE_BYTES;
        self.observe(if fits { length } else { PAGE_BYTES });
        (fits && length <= self.rules.most_bytes).then_some(length)
    }

    fn observe(&mut self, bytes: usize) {
        let Some(rule) = self.rules.baseline else {
            return;
        };
        let seen = &mut self.viability;
        seen.bytes += bytes as u64;
        seen.encoded += 1;
        if seen.encoded == rule.window {
            let baseline = seen.bytes > rule.most_bytes as u64 * rule.window;
            *seen = Viability {
                baseline,
                ..Viability::default()
            };
        }
    }

    fn write_whole(&mut self, lpn: u64, value: V) {
        self.events.push(DeltaEvent::Whole(lpn));
        self.store(lpn, value);
    }

    fn write_delta(&mut self, lpn: u64, base: u64, length: usize, value: V) {
        self.drop_delta(lpn, self.map[&lpn]);
        if self.buffered_bytes() + SLOT_BYTES + length > PAGE_BYTES {
            self.flush();
        }
        self.buffer.push(DeltaSlot {
            lpn,
            base,
            length,
            value,
        });
        let flagged = MapEntry {
            flag: true,
            address: base,
        };
        self.map.insert(lpn, flagged);
        self.totals.deltas += 1;
        self.totals.delta_bytes += length as u64;
    }

    fn merge(&mut self, lpn: u64, why: Why) {
        let value = self.look_up(lpn, self.map[&lpn]).value;
        self.events.push(DeltaEvent::Merged(lpn, why));
        self.store(lpn, value);
    }

    /// Stores a full copy, which ends the delta and the base that were there.
    fn store(&mut self, lpn: u64, value: V) {
        if let Some(&old) = self.map.get(&lpn) {
            self.drop_delta(lpn, old);
        }
        let address = self.program(Stored::Full { lpn, value });
        let entry = MapEntry {
            flag: false,
            address,
        };
        self.map.insert(lpn, entry);
    }

    fn drop_delta(&mut self, lpn: u64, entry: MapEntry) {
        self.buffer.retain(|slot| slot.lpn != lpn);
        self.deltas.remove(&entry.address);
    }

    fn buffered_bytes(&self) -> usize {
        let slots = self.buffer.iter().map(|slot| SLOT_BYTES + slot.length);
        HEADER_BYTES + slots.sum::<usize>()
    }

    fn program(&mut self, stored: Stored<V>) -> u64 {
        let address = self.flash.len() as u64;
        self.flash.insert(address, stored);
        address
    }

    fn full(&self, address: u64) -> V {
        match &self.flash[&address] {
            Stored::Full { value, .. } => *value,
            Stored::Packed(_) => panic!("address {address} holds a packed page"),
        }
    }

    fn look_up(&self, lpn: u64, entry: MapEntry) -> Read<V> {
        if !entry.flag {
            return Read {
                value: self.full(entry.address),
                flash_reads: 1,
                delta: false,
            };
        }
        let in_ram = self.buffer.iter().find(|slot| slot.lpn == lpn);
        let (slot, flash_reads) = match (in_ram, self.deltas.get(&entry.address)) {
            (Some(slot), _) => (slot, 1),
            (None, Some(page)) => match &self.flash[page] {
                Stored::Packed(slots) => {
                    let slot = slots.iter().find(|slot| slot.lpn == lpn);
                    (slot.expect("the header names the page"), 2)
                }
                Stored::Full { .. } => panic!("address {page} holds a full page"),
            },
            (None, None) => panic!("LPN {lpn} is flagged and has no delta"),
        };
        assert_eq!(slot.base, entry.address, "LPN {lpn} has another base");
        Read {
            value: slot.value,
            flash_reads,
            delta: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const RULES: DeltaFtlRules = DeltaFtlRules {
        hot_writes: Some(2),
        hot_reads: Some(2),
        most_bytes: 3000,
        most_bases: usize::MAX,
        baseline: None,
    };

    fn device(bytes: usize) -> DeltaFtl<u64, impl Fn(u64, u64) -> usize> {
        DeltaFtl::new(RULES, move |_, _| bytes)
    }

    #[test]
    fn the_first_write_is_whole_and_the_second_a_delta() {
        let mut ftl = device(1000);
        ftl.write(7, 1);
        ftl.write(7, 2);
        assert_eq!(ftl.take_events(), [DeltaEvent::Whole(7)]);
        assert!(ftl.is_delta(7));
        let in_ram = Read {
            value: 2,
            flash_reads: 1,
            delta: true,
        };
        assert_eq!(ftl.read(7), Some(in_ram));
        assert!(!ftl.merge_if_read_hot(7));
        ftl.flush();
        let on_flash = Read {
            flash_reads: 2,
            ..in_ram
        };
        assert_eq!(ftl.read(7), Some(on_flash));
        assert!(ftl.merge_if_read_hot(7) && !ftl.merge_if_read_hot(7));
        ftl.write(7, 3); // read-hot: whole
        let expected = [
            DeltaEvent::Packed(vec![7]),
            DeltaEvent::Merged(7, Why::ReadHot),
            DeltaEvent::Whole(7),
        ];
        assert_eq!(ftl.take_events(), expected);
        ftl.check();
    }

    #[test]
    fn a_page_holds_as_many_deltas_as_fit_with_their_slots() {
        for (bytes, fit) in [(1015, 4), (1016, 3), (3000, 1), (2038, 2), (2039, 1)] {
            let mut ftl = device(bytes);
            for lpn in 0..5 {
                ftl.write(lpn, 0);
            }
            ftl.take_events();
            for lpn in 0..5 {
                ftl.write(lpn, 1);
            }
            assert_eq!(
                ftl.take_events()[0],
                DeltaEvent::Packed((0..fit).collect()),
                "{bytes} bytes"
            );
            ftl.check();
        }
        let mut ftl = device(3001);
        ftl.write(0, 0);
        ftl.write(0, 1);
        assert_eq!(
            ftl.take_events(),
            [DeltaEvent::Whole(0), DeltaEvent::Whole(0)]
        );
    }

    #[test]
    fn a_newer_delta_takes_the_room_of_the_older() {
        let mut ftl = device(2038);
        for value in 0..9 {
            ftl.write(1, value);
            ftl.write(2, value);
        }
        assert_eq!(
            ftl.take_events(),
            [DeltaEvent::Whole(1), DeltaEvent::Whole(2)]
        );
        ftl.trim(1);
        assert_eq!(ftl.read(1), None);
        ftl.flush();
        assert_eq!(ftl.take_events(), [DeltaEvent::Packed(vec![2])]);
        ftl.check();
    }

    #[test]
    fn the_scan_lists_what_was_not_written_twice_since_the_one_before() {
        let mut ftl = device(100);
        for lpn in 0..4 {
            ftl.write(lpn, 0);
            ftl.write(lpn, 1);
        }
        ftl.scan();
        assert!(ftl.cold().is_empty(), "all were hot");
        ftl.write(1, 2);
        ftl.write(1, 3);
        ftl.write(2, 2); // once is not enough to be encoded
        ftl.scan();
        ftl.take_events();
        ftl.trim(0);
        assert_eq!(ftl.merge_cold(3), Some(1));
        assert_eq!(ftl.merge_cold(3), None);
        assert!(ftl.cold().is_empty());
        assert_eq!(ftl.take_events(), [DeltaEvent::Merged(3, Why::WriteCold)]);
        assert!(ftl.is_delta(1) && !ftl.is_delta(2));
        ftl.check();
    }

    #[test]
    fn baseline_mode_begins_and_ends_with_the_mean_of_a_window() {
        let rules = DeltaFtlRules {
            baseline: Some(Baseline {
                most_bytes: 1000,
                window: 2,
                probe: 3,
            }),
            ..RULES
        };
        let mut ftl = DeltaFtl::new(rules, |_, new: u64| new as usize);
        for value in [0, 900, 1101] {
            ftl.write(1, value); // the last ends a window at a mean of 1000.5
        }
        for value in [10, 10, 10, 10, 10] {
            ftl.write(1, value);
        }
        assert_eq!((ftl.totals().candidates, ftl.totals().bypassed), (7, 4));
        ftl.write(1, 10); // the second probe ends the window
        ftl.write(1, 10);
        assert_eq!((ftl.totals().candidates, ftl.totals().bypassed), (9, 4));
        ftl.check();
    }

    #[test]
    fn what_was_written_is_read() {
        let mut random = Random(3);
        let mut ftl = DeltaFtl::new(RULES, |base: u64, new: u64| {
            (base * 31 + new * 17) as usize % 3500
        });
        let mut model = BTreeMap::new();
        for _ in 0..20_000 {
            let lpn = random.below(30);
            match random.below(20) {
                0 => {
                    ftl.trim(lpn);
                    model.remove(&lpn);
                }
                1 => ftl.scan(),
                2 | 3 => {
                    if let Some(&cold) = ftl.cold().first() {
                        ftl.merge_cold(cold);
                    }
                }
                4..7 => {
                    assert_eq!(ftl.read(lpn).map(|r| r.value), model.get(&lpn).copied());
                    ftl.merge_if_read_hot(lpn);
                }
                _ => {
                    let value = random.below(1000);
                    ftl.write(lpn, value);
                    model.insert(lpn, value);
                }
            }
            ftl.check();
        }
    }
}
