//! What is recorded while requests are served: latencies, and on demand a time line and a log.
//!
//! Recording starts after warm-up; a request counts when it *arrived* after it.

use std::io::Write;

use flashlore_flash::Time;
use flashlore_flash::sim::Worked;
use flashlore_ftl::Counters;
use flashlore_trace::Op;

use crate::results::{Arrivals, LatencyByKind, Space, Timeline, Wear};

use super::requests::InFlight;

/// What to record besides latencies.
#[derive(Default)]
pub struct MeasureOptions {
    /// Width of a time line's buckets in nanoseconds.
    pub timeline_ns: Option<u64>,
    /// Where a line for every request goes.
    pub request_log: Option<Box<dyn Write + Send>>,
}

/// What was recorded.
#[derive(Default)]
pub struct Measured {
    /// From arrival to completion, queueing included.
    pub response: LatencyByKind,
    /// From the first unit being served to completion.
    pub service: LatencyByKind,
    /// Requests that arrived.
    pub requests: u64,
    /// Bytes they read and wrote, in whole units.
    pub bytes: u64,
    /// When the first and the last of them arrived.
    arrived: Option<(Time, Time)>,
    /// Figures over time.
    pub timeline: Option<Timeline>,
    log: Option<Box<dyn Write + Send>>,
    log_error: Option<std::io::Error>,
    seen: SplitCounters,
    looks: Option<LastLook>,
}

impl Measured {
    /// Nothing so far.
    pub fn new(options: MeasureOptions) -> Self {
        let mut log = options.request_log;
        let head = "number,op,arrival_ns,start_ns,end_ns,units\n";
        let log_error = log
            .as_mut()
            .and_then(|l| l.write_all(head.as_bytes()).err());
        Measured {
            timeline: options.timeline_ns.map(Timeline::new),
            log,
            log_error,
            ..Measured::default()
        }
    }

    /// A request is done; `link` is what the host link adds.
    #[inline(always)]
    pub fn record(&mut self, request: &InFlight, link: Time) {
        let response = request.end - request.arrival + link;
        let service = request.end - request.start + link;
        match request.op {
            Op::Read => {
                self.response.read.record(response);
                self.service.read.record(service);
            }
            Op::Write => {
                self.response.write.record(response);
                self.service.write.record(service);
            }
            Op::Trim | Op::Flush => {
                self.response.trim.record(response);
                self.service.trim.record(service);
            }
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.at(request.arrival).respond(response);
        }
        if self.log.is_some() {
            self.write_log(request, link);
        }
    }

    fn write_log(&mut self, r: &InFlight, link: Time) {
        let Some(log) = &mut self.log else { return };
        let op = match r.op {
            Op::Read => "R",
            Op::Write => "W",
            Op::Trim => "T",
            Op::Flush => "F",
        };
        let line = writeln!(
            log,
            "{},{op},{},{},{},{}",
            r.number,
            r.arrival,
            r.start,
            r.end + link,
            r.units
        );
        if let Err(error) = line {
            self.log_error.get_or_insert(error);
        }
    }

    /// A request arrives.
    #[inline(always)]
    pub fn arrive(&mut self, at: Time, op: Op, units: u32) {
        self.requests += 1;
        let first = self.arrived.map_or(at, |(first, _)| first);
        self.arrived = Some((first, at));
        if matches!(op, Op::Read | Op::Write) {
            self.bytes += u64::from(units) * 4096;
        }
        if let Some(timeline) = &mut self.timeline {
            let bucket = timeline.at(at);
            bucket.requests += 1;
            match op {
                Op::Read => bucket.read_pages += u64::from(units),
                Op::Write => bucket.write_pages += u64::from(units),
                Op::Trim => bucket.trim_pages += u64::from(units),
                Op::Flush => {}
            }
        }
    }

    /// When requests arrived, in a run that ended at `end`.
    pub fn arrivals(&self, end: Time) -> Arrivals {
        let (first, last) = self.arrived.unwrap_or((end, end));
        Arrivals {
            span_s: (last - first) as f64 / 1e9,
            backlog_s: end.saturating_sub(last) as f64 / 1e9,
        }
    }

    /// Whether somebody looks at the device between requests.
    #[inline(always)]
    pub fn watches(&self) -> bool {
        self.timeline.is_some()
    }

    /// Books what the device did since the last call to the bucket of this instant.
    pub fn watch(&mut self, at: Time, counters: &Counters, free_blocks: u32) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        let (now, seen) = (SplitCounters::of(counters), self.seen);
        let bucket = timeline.at(at);
        bucket.host_programs += now.host - seen.host;
        bucket.gc_programs += now.gc - seen.gc;
        bucket.other_programs += now.other - seen.other;
        bucket.erases += now.erases - seen.erases;
        bucket.free_blocks = Some(u64::from(free_blocks));
        self.seen = now;
    }

    /// The stretches of the time line begin to be looked at; the device has worked for so long.
    pub fn begin_looking(&mut self, at: Time, worked: Worked) {
        self.looks = self.timeline.as_ref().map(|timeline| LastLook {
            since: at,
            next: timeline.end_of(at),
            worked,
        });
    }

    /// Where the device is to be looked at next: the end of a stretch.
    #[inline(always)]
    pub fn next_look(&self) -> Option<Time> {
        self.looks.as_ref().map(|looks| looks.next)
    }

    /// The time line reaches an instant, and becomes coarser if it has to.
    pub fn reach(&mut self, at: Time) {
        if let (Some(timeline), Some(looks)) = (&mut self.timeline, &mut self.looks) {
            timeline.at(at);
            looks.next = timeline.end_of(looks.since);
        }
    }

    /// Books what is seen of the device at an instant to the stretch since the last look.
    pub fn look(&mut self, at: Time, (counters, free_blocks): (&Counters, u32), sight: Sight) {
        let Some(since) = self.looks.as_ref().map(|looks| looks.since) else {
            return;
        };
        self.watch(since, counters, free_blocks);
        let (Some(timeline), Some(looks)) = (&mut self.timeline, &mut self.looks) else {
            return;
        };
        let bucket = timeline.at(since);
        let mean = |worked: Time, parts: u32| worked as f64 / f64::from(parts);
        bucket.watched_ns += at - since;
        bucket.die_busy_ns += mean(sight.worked.servers - looks.worked.servers, sight.servers);
        bucket.channel_busy_ns += mean(
            sight.worked.channels - looks.worked.channels,
            sight.channels,
        );
        bucket.wear = sight.wear;
        bucket.space = sight.space;
        *looks = LastLook {
            since: at,
            next: timeline.end_of(at),
            worked: sight.worked,
        };
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The first failure to write it.
    pub fn finish(&mut self) -> std::io::Result<()> {
        if let Some(error) = self.log_error.take() {
            return Err(error);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.flush())
    }
}

/// The looks at the device so far.
struct LastLook {
    /// When the last one was.
    since: Time,
    /// Where the stretch of that instant ends.
    next: Time,
    /// What the device had worked by then.
    worked: Worked,
}

/// What is seen of a device when it is looked at.
pub struct Sight {
    /// What its parts have worked.
    pub worked: Worked,
    /// Its dies, or planes where they are independent.
    pub servers: u32,
    pub channels: u32,
    pub wear: Option<Wear>,
    /// What is in use of it.
    pub space: Space,
}

/// The counters that a time line splits.
#[derive(Debug, Clone, Copy, Default)]
struct SplitCounters {
    host: u64,
    gc: u64,
    other: u64,
    erases: u64,
}

impl SplitCounters {
    fn of(c: &Counters) -> Self {
        SplitCounters {
            host: c.programs_host,
            gc: c.programs_gc,
            other: c.programs() - c.programs_host - c.programs_gc,
            erases: c.erases,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::engine::requests::SentBy;
    use flashlore_flash::Lpn;

    struct Sent(Sender<Vec<u8>>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_log_ends_requests_when_the_response_is_given() {
        let (sender, received) = channel();
        let mut measured = Measured::new(MeasureOptions {
            timeline_ns: None,
            request_log: Some(Box::new(Sent(sender))),
        });
        let request = InFlight {
            arrival: 1_000,
            start: 4_000,
            end: 9_000,
            left: 0,
            lpn: Lpn(8),
            units: 2,
            number: 5,
            op: Op::Write,
            measured: true,
            by: SentBy::Host,
        };
        measured.record(&request, 700);
        measured.finish().unwrap();
        let response_us = measured.response.write.stats().max;
        let service_us = measured.service.write.stats().max;
        drop(measured);
        let text: Vec<u8> = received.iter().flatten().collect();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().nth(1), Some("5,W,1000,4000,9700,2"));
        // The figures of the results are differences of the log's columns.
        assert_eq!(response_us, Some(8.7));
        assert_eq!(service_us, Some(5.7));
    }
}
