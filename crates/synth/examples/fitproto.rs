use flashlore_synth::SynthOptions;
use flashlore_synth::fit::*;
use flashlore_trace::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let e = |k: &str, d: u32| {
        std::env::var(k)
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(d)
    };
    let mut est = Estimator::default();
    let t = std::time::Instant::now();
    for_each_access(
        vec![TraceReader::open(&a[1], &ReadOptions::default()).unwrap()],
        &WorkloadOptions::new(ContentModel::FromTrace),
        |x| {
            est.observe(x);
            Ok(())
        },
    )
    .unwrap();
    let t1 = t.elapsed();
    let fit = est.fit(
        "x",
        "y",
        Detail {
            epochs: a[3].parse().unwrap(),
            steps: e("Q", 64),
            context: e("K", 1) as usize,
            sharing: e("SH", 0) == 1,
        },
    );
    let t2 = t.elapsed();
    let text = fit.to_text();
    let back = Fit::parse("t", &text).unwrap();
    assert!(back == fit);
    std::fs::write("/tmp/fit/last.toml", &text).unwrap();
    let mut g = FitGenerator::new(
        &fit,
        &SynthOptions {
            seed: a[4].parse().unwrap(),
            ..Default::default()
        },
    );
    let mut r = 0u64;
    let f = std::fs::File::create(&a[2]).unwrap();
    let mut w = formats::native::NativeWriter::new(std::io::BufWriter::new(f)).unwrap();
    let mut b = Batch::default();
    let mut pages = 0;
    while g.next_batch(&mut b) {
        for x in b.iter() {
            r += 1;
            pages += x.length / 4096;
            w.push(&x).unwrap();
        }
    }
    w.finish(&DeviceNames::new(devices::NameStyle::Number), 0)
        .unwrap();
    eprintln!(
        "distinct {} lines, {} bytes; {} pages {} made, requests {r}; observe {t1:?} fit {t2:?} all {:?}",
        fit.lines(),
        text.len(),
        fit.pages(),
        pages,
        t.elapsed()
    );
}
