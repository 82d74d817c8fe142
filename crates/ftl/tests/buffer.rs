//! The write buffer and the write queue against naive models: the same calls, the same answers, and
//! every invariant after each.

use flashlore_flash::Lpn;
use flashlore_ftl::buffer::{BufferPlace, Put, Replacement, WriteBuffer, WriteQueue};
use proptest::prelude::*;

const PAGES: u32 = 8;

/// A version of a page: its number, the page, whether it leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Version {
    number: u32,
    lpn: Lpn,
    place: Option<BufferPlace>,
}

/// A buffer as lists of pages, heads first.
struct BufferModel {
    places: usize,
    policy: Replacement,
    probation: Vec<Version>,
    protected: Vec<Version>,
    leaving: Vec<Version>,
    /// The number of the newest version of each page, unless it was trimmed.
    newest: [Option<u32>; PAGES as usize],
}

impl BufferModel {
    fn new(places: u32, policy: Replacement) -> Self {
        BufferModel {
            places: places as usize,
            policy,
            probation: Vec::new(),
            protected: Vec::new(),
            leaving: Vec::new(),
            newest: [None; PAGES as usize],
        }
    }

    fn used(&self) -> usize {
        self.probation.len() + self.protected.len() + self.leaving.len()
    }

    fn take(list: &mut Vec<Version>, lpn: Lpn) -> Option<Version> {
        let at = list.iter().position(|v| v.lpn == lpn)?;
        Some(list.remove(at))
    }

    fn put(&mut self, lpn: Lpn, number: u32) -> Put {
        let held = self.probation.iter().chain(&self.protected);
        let is_held = held.clone().any(|v| v.lpn == lpn);
        if !is_held && self.used() == self.places {
            return Put::Full;
        }
        self.newest[lpn.index()] = Some(number);
        let new = Version {
            number,
            lpn,
            place: None,
        };
        if !is_held {
            self.probation.insert(0, new);
            return Put::Placed;
        }
        match self.policy {
            Replacement::Fifo => {
                let version = self.probation.iter_mut().find(|v| v.lpn == lpn);
                version.expect("it is held").number = number;
            }
            Replacement::Slru { protected } => {
                Self::take(&mut self.probation, lpn);
                Self::take(&mut self.protected, lpn);
                self.protected.insert(0, new);
                if self.protected.len() > protected as usize {
                    let last = self.protected.pop().expect("it is not empty");
                    self.probation.insert(0, last);
                }
            }
        }
        Put::Replaced
    }

    fn get(&self, lpn: Lpn) -> Option<u32> {
        let all = self.probation.iter().chain(&self.protected);
        let mut all = all.chain(&self.leaving);
        let newest = self.newest[lpn.index()]?;
        all.any(|v| v.number == newest).then_some(newest)
    }

    fn evict(&mut self) -> Option<(Lpn, u32)> {
        let victim = self.probation.pop().or_else(|| self.protected.pop())?;
        self.leaving.push(victim);
        Some((victim.lpn, victim.number))
    }

    fn trim(&mut self, lpn: Lpn) -> bool {
        self.newest[lpn.index()] = None;
        let dropped = Self::take(&mut self.probation, lpn);
        dropped
            .or_else(|| Self::take(&mut self.protected, lpn))
            .is_some()
    }
}

fn policies() -> impl Strategy<Value = Replacement> {
    prop_oneof![
        Just(Replacement::Fifo),
        (0u32..5).prop_map(|protected| Replacement::Slru { protected }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_buffer_is_the_naive_one(
        places in 1u32..6,
        policy in policies(),
        calls in prop::collection::vec((0u8..10, 0..PAGES, any::<prop::sample::Index>()), 1..200),
    ) {
        let mut fast = WriteBuffer::new(places, policy);
        let mut model = BufferModel::new(places, policy);
        for (number, (call, lpn, which)) in (0u32..).zip(calls) {
            match call {
                0..=4 => prop_assert_eq!(fast.put(Lpn(lpn), number), model.put(Lpn(lpn), number)),
                5 | 6 => {
                    let found = fast.evict();
                    prop_assert_eq!(found.map(|(_, lpn, v)| (lpn, v)), model.evict());
                    if let Some((place, ..)) = found {
                        prop_assert!(model.leaving.iter().all(|v| v.place != Some(place)));
                        model.leaving.last_mut().expect("it leaves").place = Some(place);
                    }
                }
                7 | 8 if !model.leaving.is_empty() => {
                    let at = which.index(model.leaving.len());
                    fast.free(model.leaving.remove(at).place.expect("it has left its list"));
                }
                _ => prop_assert_eq!(fast.trim(Lpn(lpn)), model.trim(Lpn(lpn))),
            }
            fast.check().map_err(TestCaseError::fail)?;
            for lpn in 0..PAGES {
                prop_assert_eq!(fast.get(Lpn(lpn)), model.get(Lpn(lpn)), "page {}", lpn);
            }
            let pages = |list: &[Version]| list.iter().map(|v| v.lpn).collect::<Vec<_>>();
            prop_assert_eq!(fast.segments(), [pages(&model.probation), pages(&model.protected)]);
            prop_assert_eq!(fast.leaving() as usize, model.leaving.len());
            prop_assert_eq!(fast.has_room(), model.used() < places as usize);
        }
    }

    #[test]
    fn the_queue_is_the_naive_one(
        places in 1u32..8,
        bucket in 1u32..5,
        calls in prop::collection::vec((0u8..10, 0..PAGES, any::<prop::sample::Index>()), 1..200),
    ) {
        let mut fast = WriteQueue::new(places, bucket);
        // In order of arrival: number and page; and what leaves, with its place.
        let mut held: Vec<(u32, u32)> = Vec::new();
        let mut leaving: Vec<(u32, u32, BufferPlace)> = Vec::new();
        let mut newest = [None; PAGES as usize];
        for (number, (call, lpn, which)) in (0u32..).zip(calls) {
            match call {
                0..=4 => {
                    let room = held.len() + leaving.len() < places as usize;
                    prop_assert_eq!(fast.push(Lpn(lpn), number), room);
                    if room {
                        held.push((number, lpn));
                        newest[lpn as usize] = Some(number);
                    }
                }
                5 | 6 => {
                    let of = |&(_, page): &(u32, u32)| page / bucket;
                    let own = held.iter().any(|change| of(change) == lpn / bucket);
                    let length = |b: u32| held.iter().filter(|c| of(c) == b).count();
                    // The first of the longest: the one with the oldest change.
                    let buckets = held.iter().map(of);
                    let largest = buckets.rev().max_by_key(|&b| length(b));
                    let chosen = if call == 5 && own { Some(lpn / bucket) } else { largest };
                    let (out, kept): (Vec<_>, Vec<_>) =
                        held.iter().copied().partition(|c| Some(of(c)) == chosen);
                    let places = if call == 5 { fast.flush_bucket_of(Lpn(lpn)) } else { fast.flush_largest() };
                    let found: Vec<(u32, u32)> = places
                        .iter()
                        .map(|&place| fast.change(place))
                        .map(|(lpn, number)| (number, lpn.0))
                        .collect();
                    prop_assert_eq!(&found, &out);
                    leaving.extend(out.iter().zip(places).map(|(&(n, l), place)| (n, l, place)));
                    held = kept;
                }
                _ if !leaving.is_empty() => {
                    let (number, lpn, place) = leaving.remove(which.index(leaving.len()));
                    fast.free(place);
                    if newest[lpn as usize] == Some(number) {
                        newest[lpn as usize] = None;
                    }
                }
                _ => {}
            }
            fast.check().map_err(TestCaseError::fail)?;
            for lpn in 0..PAGES {
                prop_assert_eq!(fast.get(Lpn(lpn)), newest[lpn as usize], "page {}", lpn);
            }
            prop_assert_eq!((fast.held(), fast.leaving()), (held.len() as u32, leaving.len() as u32));
        }
    }
}

/// The example of a segmented list: what was written twice stays, and is demoted when another is.
#[test]
fn pages_written_again_are_protected_and_demoted() {
    let mut buffer = WriteBuffer::new(3, Replacement::Slru { protected: 1 });
    for lpn in [1, 2, 3] {
        assert_eq!(buffer.put(Lpn(lpn), ()), Put::Placed);
    }
    assert_eq!(buffer.put(Lpn(1), ()), Put::Replaced);
    assert_eq!(buffer.segments(), [vec![Lpn(3), Lpn(2)], vec![Lpn(1)]]);
    assert_eq!(buffer.put(Lpn(2), ()), Put::Replaced);
    // 2 took the place of 1, which begins anew: 3 is now the one to go.
    assert_eq!(buffer.segments(), [vec![Lpn(1), Lpn(3)], vec![Lpn(2)]]);
    assert_eq!(buffer.put(Lpn(4), ()), Put::Full);
    assert_eq!(buffer.evict().map(|(_, lpn, ())| lpn), Some(Lpn(3)));
    assert_eq!(
        buffer.put(Lpn(4), ()),
        Put::Full,
        "its place is taken until it has left"
    );
    assert_eq!(buffer.get(Lpn(3)), Some(()), "and it is read until then");
}
