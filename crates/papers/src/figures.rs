//! The figures that a run or a count of values gives, by name.

use std::collections::BTreeMap;

use flashlore_sim::config::UNIT_BYTES;
use flashlore_sim::results::{RunOutput, RunResult};
use serde::Serialize;

use crate::search::SETTING;

/// The factor on a workload and its device, which is 1 where the trace itself is replayed: of every run and count.
pub const FACTOR: &str = "factor";

/// Names of the figures of a run on a device or of an array. A definition that names another is refused.
pub const RUN_FIGURES: [&str; 90] = [
    FACTOR,
    "requests",
    "host_reads",
    "host_writes",
    "ftl_writes",
    "programs",
    "host_programs",
    "gc_programs",
    "merge_programs",
    "unique",
    "duplicate",
    "reborn",
    "erases",
    "victims",
    "log_victims",
    "pages_per_block",
    "valid_per_victim",
    "victims_empty_percent",
    "victims_eighth_percent",
    "victims_quarter_percent",
    "victims_half_percent",
    "victims_three_quarters_percent",
    "waf_gc",
    "waf_total",
    "hit_rate",
    "deltas",
    "mean_rc",
    "bypassed",
    "merges_read_hot",
    "merges_write_cold",
    "merges_gc",
    "repacked",
    "delta_reads",
    "delta_double_reads",
    "pinned_mb",
    "compressed",
    "copied",
    "copied_live",
    "copied_historical",
    "requests_per_flush",
    "history_entries",
    "history_recorded",
    "history_dropped",
    "history_mb",
    "window_h",
    "hours",
    "recovered_instants",
    "response_mean_ms",
    "response_std_ms",
    "read_mean_us",
    "read_p50_us",
    "read_p99_us",
    "read_service_us",
    "write_mean_us",
    "write_p50_us",
    "write_p99_us",
    "write_max_us",
    "die_busy",
    "iops",
    "seconds",
    "ssd_reads",
    "ssd_writes",
    "hdd_ops",
    "hdd_reads",
    "hdd_writes",
    "hdd_read_pages",
    "hdd_mb",
    "ios_per_hdd_op",
    "references_percent",
    "associates_percent",
    "independents_percent",
    "mean_delta_bytes",
    "mean_alone_bytes",
    "array_deltas",
    "array_alone",
    "deltas_per_log_block",
    "delta_ram_peak_mb",
    "delta_ram_mb",
    "too_big",
    "fills",
    "shared",
    "written_home",
    "hit_percent",
    "processor_percent",
    "hdd_percent",
    "energy_j",
    "ssd_energy_j",
    "hdd_energy_j",
    "hdd_model_j",
    SETTING,
];

/// Figures by run and name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, BTreeMap<&'static str, f64>>);

impl Figures {
    /// A figure of a run, if it has a meaning there.
    pub fn get(&self, run: &str, figure: &str) -> Option<f64> {
        self.0.get(run)?.get(figure).copied()
    }

    pub fn insert(&mut self, run: &str, figures: impl IntoIterator<Item = (&'static str, f64)>) {
        self.0.insert(run.to_owned(), figures.into_iter().collect());
    }

    pub fn set(&mut self, run: &str, figure: &'static str, value: f64) {
        self.0
            .entry(run.to_owned())
            .or_default()
            .insert(figure, value);
    }

    pub fn remove(&mut self, run: &str) {
        self.0.remove(run);
    }

    pub fn extend(&mut self, other: Figures) {
        self.0.extend(other.0);
    }
}

/// The figures of a run; those without meaning are left out.
pub fn of_run(output: &RunOutput) -> Vec<(&'static str, f64)> {
    let run = &output.result;
    let mut all = work(run);
    all.extend(victims(run));
    all.extend(content(run));
    all.extend(times(run));
    if run.configuration.system.array.is_some() {
        all.extend(of_array(run));
        all.extend(energy(run));
    }
    let recovered = output.recovered.map(|r| f64::from(r.instants));
    all.push(("recovered_instants", recovered));
    let known = all.into_iter();
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

type Pairs = Vec<(&'static str, Option<f64>)>;

fn count(n: u64) -> Option<f64> {
    Some(n as f64)
}

/// What the host asked and the flash did.
fn work(run: &RunResult) -> Pairs {
    let p = &run.programs;
    let share = |n: Option<u64>| n.map(|n| n as f64);
    // Behind a buffer only what leaves it reaches the translation layer.
    let ftl_writes = match run.configuration.device.buffer.policy {
        flashlore_sim::config::BufferPolicy::None => run.host.write_pages,
        _ => run.buffer.evictions,
    };
    let collects = run.gc.victims > 0;
    vec![
        ("requests", count(run.host.requests)),
        ("host_reads", count(run.host.read_pages)),
        ("host_writes", count(run.host.write_pages)),
        ("ftl_writes", count(ftl_writes)),
        ("programs", count(p.total())),
        ("host_programs", count(p.foreground())),
        ("gc_programs", count(p.gc)),
        ("merge_programs", count(p.merge)),
        ("unique", share(p.unique)),
        ("duplicate", share(p.duplicate)),
        ("reborn", share(p.reborn)),
        ("erases", count(run.flash.block_erases)),
        ("victims", count(run.gc.victims)),
        (
            "log_victims",
            count(run.gc.log_victims).filter(|_| collects),
        ),
        (
            "pages_per_block",
            Some(f64::from(run.configuration.device.geometry.pages_per_block)),
        ),
        ("valid_per_victim", run.gc.mean_valid_per_victim),
        ("waf_gc", run.waf_gc),
        ("waf_total", run.waf_total),
        ("die_busy", run.utilization.die_mean),
    ]
}

/// Shares of the blocks collected of which at most so much was valid.
fn victims(run: &RunResult) -> Pairs {
    let d = &run.configuration.device;
    let block = u64::from(d.geometry.pages_per_block) * d.geometry.page_size.0 / UNIT_BYTES;
    let share = |part: f64| share_below(&run.gc.valid_per_victim, part * block as f64);
    vec![
        ("victims_empty_percent", share(0.0)),
        ("victims_eighth_percent", share(1.0 / 8.0)),
        ("victims_quarter_percent", share(1.0 / 4.0)),
        ("victims_half_percent", share(1.0 / 2.0)),
        ("victims_three_quarters_percent", share(3.0 / 4.0)),
    ]
}

/// Of victims with so many valid units, the per cent that have no more than these.
fn share_below(victims: &[(u64, u64)], units: f64) -> Option<f64> {
    let all: u64 = victims.iter().map(|(_, victims)| victims).sum();
    let below = victims.iter().filter(|(valid, _)| *valid as f64 <= units);
    let below: u64 = below.map(|(_, victims)| victims).sum();
    (all > 0).then(|| 100.0 * below as f64 / all as f64)
}

/// What the policies did.
fn content(run: &RunResult) -> Pairs {
    let (d, h) = (&run.delta, &run.history);
    let copied = run.gc.valid_units_moved;
    vec![
        ("hit_rate", run.dedup.hit_rate()),
        ("deltas", count(d.encoded)),
        ("mean_rc", d.mean_rc),
        ("bypassed", count(d.bypassed)),
        ("merges_read_hot", count(d.merges.read_hot)),
        ("merges_write_cold", count(d.merges.write_cold)),
        ("merges_gc", count(d.merges.gc)),
        ("repacked", count(d.repacked)),
        ("delta_reads", count(d.reads)),
        ("delta_double_reads", count(d.double_reads)),
        ("pinned_mb", Some(d.pinned_bytes as f64 / 1e6)),
        ("compressed", count(run.compress.encoded)),
        ("copied", count(copied)),
        ("copied_live", count(h.copied_live)),
        ("copied_historical", count(h.copied_historical)),
        ("requests_per_flush", run.queue.requests_per_flush),
        ("history_entries", count(h.entries)),
        ("history_recorded", count(h.recorded)),
        ("history_dropped", count(h.dropped)),
        ("history_mb", Some(h.paper_bytes as f64 / 1e6)),
        ("window_h", Some(h.window_s / 3600.0)),
    ]
}

fn times(run: &RunResult) -> Pairs {
    let (response, service) = (&run.response_us, &run.service_us);
    let ms = |us: Option<f64>| us.map(|us| us / 1e3);
    vec![
        ("hours", Some(run.run.simulated_s / 3600.0)),
        ("response_mean_ms", ms(response.all.mean)),
        ("response_std_ms", ms(response.all.std)),
        ("read_mean_us", response.read.mean),
        ("read_p50_us", response.read.p50),
        ("read_p99_us", response.read.p99),
        ("read_service_us", service.read.mean),
        ("write_mean_us", response.write.mean),
        ("write_p50_us", response.write.p50),
        ("write_p99_us", response.write.p99),
        ("write_max_us", response.write.max),
    ]
}

/// What an array of an SSD and disks did; shares in per cent.
fn of_array(run: &RunResult) -> Pairs {
    let a = &run.array;
    let seconds = run.run.simulated_s;
    let percent = |part: u64, whole: u64| (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
    let states = a.references + a.associates + a.independents;
    let mb = |bytes: u64| Some(bytes as f64 / 1e6);
    let pages = run.host.read_pages + run.host.write_pages;
    vec![
        ("iops", Some(pages as f64 / seconds)),
        ("seconds", Some(seconds)),
        ("ssd_reads", count(a.ssd_reads)),
        ("ssd_writes", count(a.ssd_writes)),
        ("hdd_ops", count(a.hdd_ops)),
        ("hdd_reads", count(a.hdd_reads)),
        ("hdd_writes", count(a.hdd_writes)),
        ("hdd_read_pages", count(a.hdd_read_bytes / UNIT_BYTES)),
        ("hdd_mb", mb(a.hdd_read_bytes + a.hdd_written_bytes)),
        ("ios_per_hdd_op", a.ios_per_hdd_op),
        ("references_percent", percent(a.references, states)),
        ("associates_percent", percent(a.associates, states)),
        ("independents_percent", percent(a.independents, states)),
        ("mean_delta_bytes", a.mean_delta_bytes),
        ("mean_alone_bytes", a.mean_alone_bytes),
        ("array_deltas", count(a.deltas)),
        ("array_alone", count(a.alone)),
        ("deltas_per_log_block", a.deltas_per_log_block),
        ("delta_ram_peak_mb", mb(a.delta_ram_peak)),
        ("delta_ram_mb", mb(a.delta_ram)),
        ("too_big", count(a.too_big)),
        ("fills", count(a.fills)),
        ("shared", count(a.shared)),
        ("written_home", count(a.written_home)),
        ("hit_percent", percent(a.hits, a.hits + a.misses)),
    ]
}

/// How busy processor and disks of an array were, and what its devices used.
fn energy(run: &RunResult) -> Pairs {
    let a = &run.array;
    vec![
        ("processor_percent", Some(100.0 * a.processor_busy)),
        ("hdd_percent", Some(100.0 * a.hdd_busy)),
        ("energy_j", Some(a.energy_j())),
        ("ssd_energy_j", Some(a.ssd_energy_j)),
        ("hdd_energy_j", Some(a.hdd_energy_j)),
        ("hdd_model_j", a.hdd_model_j),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_are_shared_out_by_what_they_hold() {
        let victims = [(0, 1), (3, 4), (8, 3), (40, 2)];
        let shares = [0.0, 2.9, 3.0, 8.0, 39.0, 40.0].map(|units| share_below(&victims, units));
        assert_eq!(shares, [10.0, 10.0, 50.0, 80.0, 80.0, 100.0].map(Some));
        assert_eq!(share_below(&[], 1.0), None);
    }
}
