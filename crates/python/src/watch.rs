//! Long work with the interpreter lock released.
//!
//! The work is done by a thread of its own. The thread that asked for it looks at Python's signals and reports
//! progress many times a second, and tells the work to stop when somebody wants to interrupt it.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use flashlore_sim::engine::Ticker;
use flashlore_trace::Stop;
use pyo3::prelude::*;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(50);

/// How far work is, and whether it shall stop. Clones are of the same work.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    stop: Stop,
    total: AtomicU64,
    done: AtomicU64,
    prepared: AtomicU64,
}

impl Watch {
    /// The work is so many requests.
    pub fn expect(&self, requests: u64) {
        self.0.total.store(requests, Relaxed);
    }

    /// What ends the reading of traces.
    pub fn stop(&self) -> &Stop {
        &self.0.stop
    }

    fn goes_on(&self) -> ControlFlow<()> {
        match self.0.stop.is_asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Calls `progress` with the requests done, those to be done, and the pages prepared.
    fn report(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(progress) = progress else {
            return Ok(());
        };
        let Counts {
            total,
            done,
            prepared,
            ..
        } = &*self.0;
        let counts = (
            done.load(Relaxed),
            total.load(Relaxed),
            prepared.load(Relaxed),
        );
        progress.call1(py, counts).map(drop)
    }
}

impl Ticker for Watch {
    fn prepare(&mut self, pages: u64) -> ControlFlow<()> {
        self.0.prepared.fetch_add(pages, Relaxed);
        self.goes_on()
    }

    fn tick(&mut self, requests: u64) -> ControlFlow<()> {
        self.0.done.fetch_add(requests, Relaxed);
        self.goes_on()
    }
}

/// Does `work`, reports its progress, and stops it when a signal handler or `progress` raises.
///
/// # Errors
/// What was raised, after the work has ended.
pub fn watched<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (at_end, ended) = channel();
            let working = scope.spawn(move || {
                let _told_when_dropped: Sender<()> = at_end;
                work()
            });
            let mut raised = None;
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                if raised.is_some() {
                    continue;
                }
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    watch.report(py, progress)
                });
                if let Err(error) = looked {
                    watch.0.stop.ask();
                    raised = Some(error);
                }
            }
            (working.join(), raised)
        })
    });
    match (result, raised) {
        (_, Some(raised)) => Err(raised),
        (Ok(result), None) => {
            watch.report(py, progress)?;
            Ok(result)
        }
        (Err(panic), None) => resume_unwind(panic),
    }
}
