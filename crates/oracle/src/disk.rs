//! A hard disk that is stepped nanosecond by nanosecond.
//!
//! Nothing is computed ahead: at each instant the arm has arrived or not, a sector begins to pass its head,
//! passes or has passed, and the controller goes on to its next step. Sectors are looked up in a table made
//! by walking over the disk. So it is good for disks that turn once in a microsecond or so.
//!
//! At one instant the order is: what passes or moves comes to its end; the request that is served goes on,
//! ends, and makes place for the next one that waits; requests arrive; destaging begins if no read waits and
//! nothing that is served needs the mechanism; a sector begins to pass.

use std::collections::{BTreeSet, VecDeque};

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Sectors, from buffer or media.
    Read,
    /// Sectors, to cache or media.
    Write,
    /// An empty write cache.
    Flush,
}

/// Which of the waiting requests is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The oldest.
    Arrival,
    /// Up to the highest, down to the lowest.
    UpAndDown,
    /// Up to the highest, then from the lowest again.
    UpOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub at: u64,
    pub kind: RequestKind,
    /// The first sector.
    pub lba: u64,
    pub sectors: u64,
}

/// Tracks of equal length: cylinders, sectors a track, slots a head and a cylinder begin later.
pub type ZoneRules = (u64, u64, u64, u64);

/// How heads move: nanoseconds of a seek by distance (entry 0 for none), and of a change of head.
#[derive(Debug, Clone)]
pub struct MoveRules {
    /// One entry a distance.
    pub seek: Vec<u64>,
    pub head_switch: u64,
}

/// The disk; all times in nanoseconds.
#[derive(Debug, Clone)]
pub struct DiskRules {
    /// Of a rotation.
    pub rotation: u64,
    pub heads: u64,
    /// From the outermost inwards.
    pub zones: Vec<ZoneRules>,
    /// Sectors in use.
    pub sectors: u64,
    /// Before reads.
    pub reads: MoveRules,
    /// Before writes.
    pub writes: MoveRules,
    /// Controller: a read from the buffer, another read, a write or flush.
    pub overhead: (u64, u64, u64),
    /// Picoseconds of a sector on the bus.
    pub bus_sector: u64,
    /// Segments of the buffer, sectors of each, sectors read ahead.
    pub buffer: (usize, u64, u64),
    /// Sectors, runs, and sectors destaged at once, of the write cache if it is on.
    pub cache: Option<(u64, usize, u64)>,
    /// Of waiting requests.
    pub order: Order,
}

/// What a simulation found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskOutcome {
    /// When each request ended, in the order given; `None` if not before the horizon.
    pub ends: Vec<Option<u64>>,
    /// Nanoseconds in which a request was served or the mechanism was at work.
    pub busy: u64,
}

/// Steps the disk from 0 to the horizon. Arrivals are in order of time.
pub fn simulate(rules: &DiskRules, arrivals: &[Arrival], horizon: u64) -> DiskOutcome {
    let mut disk = SteppedDisk::new(rules, arrivals);
    for now in 0..horizon {
        disk.now = now;
        disk.step();
        let busy = disk.served.is_some() || disk.task.is_some() || disk.moving.is_some();
        disk.outcome.busy += u64::from(busy);
    }
    disk.now = horizon;
    disk.step();
    disk.outcome
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Where {
    track: (u64, u64),
    slot: u64,
    per_track: u64,
}

/// Who works with the mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    Host,
    ReadAhead,
    Destage,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    worker: Worker,
    next: u64,
    end: u64,
    write: bool,
    not_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServicePhase {
    /// The controller looks into the buffer until then.
    Looking(u64),
    /// The controller is at work until then.
    Preparing(u64),
    /// The mechanism is to be taken for these sectors.
    Claiming { from: u64 },
    /// The read-ahead is on its way, or the request has the mechanism.
    OnMedia { ready: u64 },
    /// A cached write waits for room.
    WaitingForRoom,
    /// A flush waits for an empty cache.
    Draining,
    /// Nothing but time is left.
    Ending(u64),
}

#[derive(Debug, Clone)]
struct Served {
    number: usize,
    request: Arrival,
    begun: u64,
    phase: ServicePhase,
    segment: Option<usize>,
    /// It needs the mechanism, or may need it.
    mechanical: bool,
}

struct SteppedDisk<'a> {
    rules: &'a DiskRules,
    arrivals: &'a [Arrival],
    outcome: DiskOutcome,
    now: u64,
    places: Vec<Where>,
    arrived: usize,
    waiting: Vec<usize>,
    served: Option<Served>,
    last_begin: Option<u64>,
    going_down: bool,
    head: (u64, u64),
    moving: Option<((u64, u64), u64)>,
    passing_until: Option<u64>,
    task: Option<Task>,
    segments: Vec<VecDeque<u64>>,
    /// Segments, the one used longest ago first.
    uses: Vec<usize>,
    /// The segment read ahead into, the next sector, and behind the last one asked for.
    filling: Option<(usize, u64, u64)>,
    dirty: BTreeSet<u64>,
    destaging: Vec<u64>,
    destage_from: u64,
}

impl<'a> SteppedDisk<'a> {
    fn new(rules: &'a DiskRules, arrivals: &'a [Arrival]) -> Self {
        SteppedDisk {
            rules,
            arrivals,
            outcome: DiskOutcome {
                ends: vec![None; arrivals.len()],
                busy: 0,
            },
            now: 0,
            places: walk(rules),
            arrived: 0,
            waiting: Vec::new(),
            served: None,
            last_begin: None,
            going_down: false,
            head: (0, 0),
            moving: None,
            passing_until: None,
            task: None,
            segments: vec![VecDeque::new(); rules.buffer.0],
            uses: (0..rules.buffer.0).collect(),
            filling: None,
            dirty: BTreeSet::new(),
            destaging: Vec::new(),
            destage_from: 0,
        }
    }

    fn step(&mut self) {
        self.end_movement();
        loop {
            while self.go_on() {
                self.end_movement();
            }
            if self.served.is_some() || !self.serve_next() {
                break;
            }
        }
        while self.arrived < self.arrivals.len() && self.arrivals[self.arrived].at <= self.now {
            self.waiting.push(self.arrived);
            self.arrived += 1;
            // The first that finds the disk idle begins at once.
            if self.served.is_none() {
                self.serve_next();
                while self.go_on() {
                    self.end_movement();
                }
            }
        }
        let read = |&number: &usize| self.arrivals[number].kind == RequestKind::Read;
        let wanted = self.served.as_ref().is_some_and(|served| served.mechanical)
            || self.waiting.iter().any(read);
        if !wanted && self.task.is_none() && !self.dirty.is_empty() {
            self.begin_destage();
        }
        self.begin_movement();
    }

    /// A sector has passed, or the heads have arrived, or both and again where that takes no time.
    fn end_movement(&mut self) {
        if self.passing_until == Some(self.now) {
            self.passing_until = None;
            self.sector_passed();
        }
        if let Some((track, until)) = self.moving
            && until <= self.now
        {
            self.moving = None;
            self.head = track;
        }
    }

    fn sector_passed(&mut self) {
        let Some(mut task) = self.task else { return };
        if !task.write {
            self.keep(task.next);
        }
        task.next += 1;
        self.task = Some(task);
        if let Some((_, next, _)) = &mut self.filling
            && !task.write
        {
            *next = task.next;
        }
        if task.next == task.end {
            self.task = None;
            if task.worker == Worker::Destage {
                self.destaging.clear();
            }
        } else {
            self.move_to(task.next, task.write);
        }
    }

    fn keep(&mut self, lba: u64) {
        if let Some((segment, _, _)) = self.filling {
            let run = &mut self.segments[segment];
            run.push_back(lba);
            while run.len() as u64 > self.rules.buffer.1 {
                run.pop_front();
            }
        }
    }

    /// The heads set out for the track of a sector, if they are not there.
    fn move_to(&mut self, lba: u64, write: bool) {
        let to = self.places[lba as usize].track;
        if to == self.head {
            return;
        }
        let rules = if write {
            &self.rules.writes
        } else {
            &self.rules.reads
        };
        let arm = rules.seek[self.head.0.abs_diff(to.0) as usize];
        let switch = if to.1 == self.head.1 {
            0
        } else {
            rules.head_switch
        };
        self.moving = Some((to, self.now + arm.max(switch)));
        self.end_movement();
    }

    /// A sector begins to pass if its head is there.
    fn begin_movement(&mut self) {
        let Some(task) = self.task else { return };
        if self.moving.is_some() || self.passing_until.is_some() || self.now < task.not_before {
            return;
        }
        let place = self.places[task.next as usize];
        let begins = |slot| slot * self.rules.rotation / place.per_track;
        if self.now % self.rules.rotation == begins(place.slot) {
            let length = begins(place.slot + 1) - begins(place.slot);
            self.passing_until = Some(self.now + length);
        }
    }

    fn begin_task(&mut self, task: Task) {
        self.task = Some(task);
        self.passing_until = None;
        self.move_to(task.next, task.write);
    }

    /// Ends a read-ahead, except that the heads arrive where they are going.
    fn stop_read_ahead(&mut self) {
        if self
            .task
            .is_some_and(|task| task.worker == Worker::ReadAhead)
        {
            self.task = None;
            self.passing_until = None;
        }
        self.filling = None;
    }

    fn mechanism_is_free(&self) -> bool {
        self.task.is_none() && self.moving.is_none()
    }

    fn begin_destage(&mut self) {
        self.stop_read_ahead();
        if !self.mechanism_is_free() {
            return;
        }
        let above = self.dirty.range(self.destage_from..).copied();
        // The first run that begins there or later, or else the first of all.
        let begins = |lba: &u64| *lba == 0 || !self.dirty.contains(&(*lba - 1));
        let first = above.clone().find(begins).or(self.dirty.first().copied());
        let Some(first) = first else { return };
        let piece = self.rules.cache.map_or(1, |(_, _, piece)| piece);
        let mut end = first;
        while end - first < piece && self.dirty.remove(&end) {
            end += 1;
        }
        self.destaging = (first..end).collect();
        self.destage_from = end;
        self.begin_task(Task {
            worker: Worker::Destage,
            next: first,
            end,
            write: true,
            not_before: self.now,
        });
    }

    /// The request that is served takes its next step, if it can at this instant.
    fn go_on(&mut self) -> bool {
        let Some(mut served) = self.served.take() else {
            return false;
        };
        let before = served.phase;
        let ended = self.advance_phase(&mut served);
        if ended {
            self.outcome.ends[served.number] = Some(self.now);
            return true;
        }
        let changed = before != served.phase;
        self.served = Some(served);
        changed
    }

    fn advance_phase(&mut self, served: &mut Served) -> bool {
        let request = served.request;
        let end = request.lba + request.sectors;
        match served.phase {
            ServicePhase::Looking(until) if self.now >= until => self.look(served, end),
            ServicePhase::Preparing(until) if self.now >= until => self.prepared(served, end),
            ServicePhase::Claiming { from } => {
                if self.mechanism_is_free() {
                    self.claim(served, from, end);
                }
            }
            ServicePhase::OnMedia { ready } => {
                let host_has_it = self.task.is_some_and(|task| task.worker == Worker::Host);
                if !host_has_it {
                    self.passed(served, ready, end);
                }
            }
            ServicePhase::WaitingForRoom => {
                let idle = self
                    .task
                    .is_none_or(|task| task.worker == Worker::ReadAhead);
                if idle && !self.has_room(request.lba, end) {
                    self.begin_destage();
                }
                // A piece that begins is no run of its own any more, so there may be room at once.
                if self.has_room(request.lba, end) {
                    self.dirty.extend(request.lba..end);
                    served.phase = ServicePhase::Ending(self.now + self.bus(request.sectors));
                }
            }
            ServicePhase::Draining => {
                if !self.dirty.is_empty() {
                    if self
                        .task
                        .is_none_or(|task| task.worker == Worker::ReadAhead)
                    {
                        self.begin_destage();
                    }
                } else if self.destaging.is_empty() {
                    served.phase = ServicePhase::Ending(self.now);
                }
            }
            ServicePhase::Ending(until) => return self.now >= until,
            ServicePhase::Looking(_) | ServicePhase::Preparing(_) => {}
        }
        false
    }

    /// A read has looked into buffer and cache.
    fn look(&mut self, served: &mut Served, end: u64) {
        let lba = served.request.lba;
        let mut found: Option<usize> = None;
        for (segment, run) in self.segments.iter().enumerate() {
            let borders = run.back().is_some_and(|&last| last + 1 == lba);
            let further = found.is_none_or(|best| run.back() > self.segments[best].back());
            if (run.contains(&lba) || borders) && further {
                found = Some(segment);
            }
        }
        served.segment = found;
        if let Some(segment) = found {
            self.used(segment);
        }
        let held = |run: &VecDeque<u64>| (lba..end).all(|lba| run.contains(&lba));
        let in_segment = found.filter(|&segment| held(&self.segments[segment]));
        let cached = |lba: &u64| self.dirty.contains(lba) || self.destaging.contains(lba);
        if in_segment.is_some() || (lba..end).all(|lba| cached(&lba)) {
            if let Some(segment) = in_segment {
                self.consume(segment, end);
            }
            served.phase = ServicePhase::Ending(self.now + self.bus(end - lba));
            served.mechanical = false;
        } else {
            served.phase = ServicePhase::Preparing(served.begun + self.rules.overhead.1);
        }
    }

    fn used(&mut self, segment: usize) {
        self.uses.retain(|&other| other != segment);
        self.uses.push(segment);
    }

    /// Sectors up to `end` were taken out of a segment.
    fn consume(&mut self, segment: usize, end: u64) {
        let Some((filled, next, consumed)) = self.filling else {
            return;
        };
        if filled != segment {
            return;
        }
        let consumed = consumed.max(end);
        self.filling = Some((filled, next, consumed));
        self.read_on(next, consumed);
    }

    /// The read-ahead gets a new limit, or starts anew if half of it is used up.
    fn read_on(&mut self, next: u64, consumed: u64) {
        let ahead = self.rules.buffer.2;
        let limit = self.rules.sectors.min(consumed + ahead);
        if let Some(task) = &mut self.task {
            task.end = limit;
        } else if next - consumed <= ahead / 2 && next < limit {
            self.begin_task(Task {
                worker: Worker::ReadAhead,
                next,
                end: limit,
                write: false,
                not_before: self.now,
            });
        }
    }

    /// The controller has done its work.
    fn prepared(&mut self, served: &mut Served, end: u64) {
        let request = served.request;
        match (request.kind, self.rules.cache) {
            (RequestKind::Flush, _) => served.phase = ServicePhase::Draining,
            (RequestKind::Write, Some((sectors, _, _))) if request.sectors <= sectors => {
                served.phase = ServicePhase::WaitingForRoom;
            }
            (RequestKind::Write, _) => self.set_out(served, request.lba),
            (RequestKind::Read, _) => self.prepared_read(served, end),
        }
    }

    fn prepared_read(&mut self, served: &mut Served, end: u64) {
        let ready = self.now;
        match (self.filling, served.segment) {
            (Some((filled, next, consumed)), Some(segment)) if filled == segment => {
                if next >= end {
                    self.consume(segment, end);
                    let bus = self.bus(end - served.request.lba).max(self.bus(1));
                    served.phase = ServicePhase::Ending(ready + bus);
                    return;
                }
                match &mut self.task {
                    // On its way: it has to come as far as this.
                    Some(task) => {
                        task.end = task.end.max(end);
                        task.worker = Worker::Host;
                        task.end = end;
                    }
                    None => self.begin_task(Task {
                        worker: Worker::Host,
                        next,
                        end,
                        write: false,
                        not_before: ready,
                    }),
                }
                self.filling = Some((filled, next, consumed));
                served.phase = ServicePhase::OnMedia { ready };
            }
            (_, Some(segment)) => {
                let from = self.segments[segment].back().map_or(0, |last| last + 1);
                self.set_out(served, from);
            }
            (_, None) => self.set_out(served, served.request.lba),
        }
    }

    fn set_out(&mut self, served: &mut Served, from: u64) {
        self.stop_read_ahead();
        served.phase = ServicePhase::Claiming { from };
    }

    /// The mechanism is at hand.
    fn claim(&mut self, served: &mut Served, from: u64, end: u64) {
        let write = served.request.kind == RequestKind::Write;
        let (_, read_overhead, write_overhead) = self.rules.overhead;
        let overhead = if write { write_overhead } else { read_overhead };
        let ready = served.begun + overhead;
        if !write && self.rules.buffer.0 > 0 {
            let segment = served.segment.unwrap_or_else(|| {
                self.segments[self.uses[0]].clear();
                self.uses[0]
            });
            self.used(segment);
            self.filling = Some((segment, from, from));
        }
        let data = if write { ready + self.bus(1) } else { ready };
        self.begin_task(Task {
            worker: Worker::Host,
            next: from,
            end,
            write,
            not_before: data.max(self.now),
        });
        served.phase = ServicePhase::OnMedia { ready };
    }

    /// The last sector of the request has passed.
    fn passed(&mut self, served: &mut Served, ready: u64, end: u64) {
        if served.request.kind == RequestKind::Write {
            served.phase = ServicePhase::Ending(self.now);
            return;
        }
        let all = ready + self.bus(end - served.request.lba);
        served.phase = ServicePhase::Ending(all.max(self.now + self.bus(1)));
        if let Some((segment, next, _)) = self.filling {
            self.filling = Some((segment, next, end));
            self.read_on(next, end);
        }
    }

    fn has_room(&self, lba: u64, end: u64) -> bool {
        let Some((sectors, runs, _)) = self.rules.cache else {
            return false;
        };
        let new = (lba..end).filter(|lba| !self.dirty.contains(lba)).count() as u64;
        let there = |lba: u64| self.dirty.contains(&lba);
        let touches = (lba..=end).any(there) || lba > 0 && there(lba - 1);
        let begins = |lba: &&u64| **lba == 0 || !there(**lba - 1);
        let held = self.dirty.iter().filter(begins).count();
        (self.dirty.len() + self.destaging.len()) as u64 + new <= sectors
            && (touches || held < runs)
    }

    fn bus(&self, sectors: u64) -> u64 {
        sectors * self.rules.bus_sector / 1_000
    }

    /// Takes the next of those that wait.
    fn serve_next(&mut self) -> bool {
        let Some(position) = self.choose() else {
            return false;
        };
        let number = self.waiting.remove(position);
        let request = self.arrivals[number];
        if request.kind != RequestKind::Flush {
            self.last_begin = Some(request.lba);
        }
        let (hit, _, write) = self.rules.overhead;
        let phase = match request.kind {
            RequestKind::Read => ServicePhase::Looking(self.now + hit),
            RequestKind::Write | RequestKind::Flush => ServicePhase::Preparing(self.now + write),
        };
        let fits = self
            .rules
            .cache
            .is_some_and(|(most, _, _)| request.sectors <= most);
        self.served = Some(Served {
            mechanical: match request.kind {
                RequestKind::Read => true,
                RequestKind::Write => !fits,
                RequestKind::Flush => false,
            },
            number,
            request,
            begun: self.now,
            phase,
            segment: None,
        });
        true
    }

    fn choose(&mut self) -> Option<usize> {
        let kind = |&number: &usize| self.arrivals[number].kind;
        if self.waiting.is_empty() {
            return None;
        }
        if self.rules.order == Order::Arrival {
            return Some(0);
        }
        if let Some(flush) = self
            .waiting
            .iter()
            .position(|n| kind(n) == RequestKind::Flush)
        {
            return Some(flush);
        }
        let lbas: Vec<u64> = self.waiting.iter().map(|&n| self.arrivals[n].lba).collect();
        let first_of = |lba: u64| lbas.iter().position(|&other| other == lba);
        let last = self.last_begin;
        let above = lbas
            .iter()
            .copied()
            .filter(|&lba| last.is_none_or(|last| lba > last));
        let below = lbas
            .iter()
            .copied()
            .filter(|&lba| last.is_some_and(|last| lba < last));
        let (up, down) = (above.min(), below.max());
        let chosen = if self.rules.order == Order::UpOnly {
            up.or(lbas.iter().copied().min())
        } else if self.going_down {
            self.going_down = down.is_some();
            down.or(up)
        } else {
            self.going_down = up.is_none();
            up.or(down)
        };
        chosen.map_or(Some(0), first_of)
    }
}

/// Every sector in its place, found by walking from track to track.
fn walk(rules: &DiskRules) -> Vec<Where> {
    let mut places = Vec::new();
    let mut first_cylinder = 0;
    for &(cylinders, per_track, head_skew, cylinder_skew) in &rules.zones {
        let mut begins_at = 0;
        for cylinder in 0..cylinders {
            for head in 0..rules.heads {
                for sector in 0..per_track {
                    places.push(Where {
                        track: (first_cylinder + cylinder, head),
                        slot: (begins_at + sector) % per_track,
                        per_track,
                    });
                }
                let last_head = head + 1 == rules.heads;
                begins_at += if last_head { cylinder_skew } else { head_skew };
            }
        }
        first_cylinder += cylinders;
    }
    places.truncate(rules.sectors as usize);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten sectors a track, a turn in 1000 ns, two heads, three cylinders.
    fn rules() -> DiskRules {
        DiskRules {
            rotation: 1_000,
            heads: 2,
            zones: vec![(3, 10, 1, 2)],
            sectors: 60,
            reads: MoveRules {
                seek: vec![0, 150, 250],
                head_switch: 50,
            },
            writes: MoveRules {
                seek: vec![0, 150, 250],
                head_switch: 120,
            },
            overhead: (10, 20, 30),
            bus_sector: 5_000,
            buffer: (0, 0, 0),
            cache: None,
            order: Order::Arrival,
        }
    }

    fn request(at: u64, kind: RequestKind, lba: u64, sectors: u64) -> Arrival {
        Arrival {
            at,
            kind,
            lba,
            sectors,
        }
    }

    #[test]
    fn ends_are_those_counted_by_hand() {
        let arrivals = [
            // Sector 3 passes from 300 to 400, then 5 ns of bus.
            request(0, RequestKind::Read, 3, 1),
            // Ready at 425. Sectors 8 and 9 pass from 800 to 1000; head switch to 1050; sector 10 is in slot 1,
            // 1100 to 1200; then 5 ns of bus.
            request(405, RequestKind::Read, 8, 3),
            // Cylinder 1 from head 1: ready at 1335, there at 1485. Sector 20 is in slot 3: 2300 to 2400.
            request(1_305, RequestKind::Write, 20, 1),
            // Ready at 2430, there at 2550. Sector 30 is in slot 4: 3400 to 3500.
            request(2_400, RequestKind::Write, 30, 1),
        ];
        let outcome = simulate(&rules(), &arrivals, 5_000);
        assert_eq!(
            outcome.ends,
            [Some(405), Some(1_205), Some(2_400), Some(3_500)]
        );
        assert_eq!(outcome.busy, 405 + 800 + 1_095 + 1_100);
    }

    #[test]
    fn what_was_read_ahead_and_what_was_cached_is_at_hand() {
        let with_buffers = DiskRules {
            buffer: (1, 10, 4),
            cache: Some((4, 2, 4)),
            ..rules()
        };
        let arrivals = [
            request(0, RequestKind::Read, 0, 1),
            // Sector 0 passes at 1000 to 1100 (ready at 20); 1 to 4 are read ahead until 1500.
            request(1_600, RequestKind::Read, 1, 4),
            // In the cache at 1830, its data 20 ns later; destaged when the read-ahead has ended.
            request(1_800, RequestKind::Write, 30, 4),
            request(1_900, RequestKind::Flush, 0, 0),
        ];
        let outcome = simulate(&with_buffers, &arrivals, 9_000);
        assert_eq!(outcome.ends[..3], [Some(1_105), Some(1_630), Some(1_850)]);
        // Half of what was read ahead was used up at 1610, so sectors 5 to 8 pass until 2900. But the flush
        // is ready at 1930, stops that, and moves to head 1 of cylinder 1 until 2080; slot 4 comes at 2400.
        assert_eq!(outcome.ends[3], Some(2_800));
    }
}
