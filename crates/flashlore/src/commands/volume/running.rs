//! A volume that is open until a signal: what `serve` and `mount` share.

use std::path::PathBuf;
use std::sync::Arc;

use flashlore_paged::Pager;
use flashlore_serve::array::ArrayService;
use flashlore_serve::control::Control;
use flashlore_serve::served::{self, recovery_told};
use flashlore_serve::{Home, ServeError, Served, Service};
use flashlore_sim::config::Size;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::memory::bound;
use super::{clock, home, mode};
use crate::cli::VolumeArgs;
use crate::error::CliError;
use crate::output::tell;

/// What of a volume or an array is opened.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// All of it.
    Whole,
    /// A volume, which takes no more memory than this.
    Within(Size),
    /// The slow medium of an array, which can be read.
    SlowAlone,
}

impl How {
    /// What the flags `--memory` and `--slow-alone` ask for.
    pub fn of(memory: Option<Size>, slow_alone: bool) -> Result<Self, CliError> {
        match (memory, slow_alone) {
            (None, false) => Ok(How::Whole),
            (Some(limit), false) => Ok(How::Within(limit)),
            (None, true) => Ok(How::SlowAlone),
            (Some(_), true) => Err(CliError::Usage(
                "--memory is for volumes, --slow-alone for arrays".to_owned(),
            )),
        }
    }

    /// Whether nobody can write.
    pub fn is_read_only(self) -> bool {
        matches!(self, How::SlowAlone)
    }
}

/// A volume whose memory somebody bounds.
fn open_bounded(
    home: &Home,
    args: &VolumeArgs,
) -> Result<(Box<dyn Served>, Option<String>), ServeError> {
    let (volume, recovery) = home.open_bounded(mode(args))?;
    let service = Service::new(home.clone(), volume, clock())?;
    Ok((Box::new(service), recovery_told(&recovery)))
}

/// A volume or an array that is open, and the signals that end it.
pub struct Running {
    directory: PathBuf,
    signals: Signals,
    service: Arc<dyn Served>,
    /// Bounds the memory of the process, if that was asked for.
    _pager: Option<Pager>,
}

impl Running {
    /// Opens a volume or an array. From here on SIGTERM and SIGINT wait to be asked for.
    pub fn open(args: &VolumeArgs, how: How) -> Result<Self, CliError> {
        let directory = args.directory.clone();
        let failed = |source| CliError::serve(&args.directory, source);
        let signals = Signals::new([SIGTERM, SIGINT]).map_err(|source| CliError::File {
            action: "handle signals for",
            path: directory.clone(),
            source,
        })?;
        let home = home(args);
        let (pager, opened) = match how {
            How::Whole => (None, served::open(&home, mode(args), clock())),
            How::SlowAlone => {
                let opened = ArrayService::slow_alone(home, mode(args), clock());
                (
                    None,
                    opened.map(|array| (Box::new(array) as Box<dyn Served>, None)),
                )
            }
            How::Within(limit) => {
                home.demand_volume(
                    "takes the memory that its array.json gives it, so --memory is of no use",
                )
                .map_err(failed)?;
                (bound(&home, args, limit)?, open_bounded(&home, args))
            }
        };
        let (service, recovered) = opened.map_err(failed)?;
        if let Some(recovered) = recovered {
            tell(&recovered);
        }
        Ok(Running {
            directory,
            signals,
            service: service.into(),
            _pager: pager,
        })
    }

    /// What is open.
    pub fn service(&self) -> &Arc<dyn Served> {
        &self.service
    }

    /// What lets another thread end the wait for a signal.
    pub fn handle(&self) -> Handle {
        self.signals.handle()
    }

    /// Takes requests at the control socket, until the answer is dropped.
    pub fn control(&self) -> Result<Control, CliError> {
        let started = Control::start(Arc::clone(&self.service));
        started.map_err(|source| self.failed(source))
    }

    /// Waits for a signal; whether one came, rather than an end of the wait.
    pub fn signalled(&mut self) -> bool {
        self.signals.forever().next().is_some()
    }

    /// Closes the volume with a checkpoint. `left` tells of clients that were cut off, if there are any.
    pub fn close(self, left: Option<&str>) -> Result<(), CliError> {
        let closed = self.service.close();
        closed.map_err(|error| self.failed(error.into()))?;
        match left {
            None => Ok(()),
            Some(left) => Err(CliError::Differs(format!(
                "{}: {left} cut off; everything acknowledged is safe",
                self.directory.display()
            ))),
        }
    }

    fn failed(&self, source: ServeError) -> CliError {
        CliError::serve(&self.directory, source)
    }
}
