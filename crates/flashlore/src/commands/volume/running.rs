//! A volume that is open until a signal: what `serve` and `mount` share.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use flashlore_medium::Access;
use flashlore_serve::array::ArrayService;
use flashlore_serve::clock::even;
use flashlore_serve::control::Control;
use flashlore_serve::served;
use flashlore_serve::{Budget, Home, ServeError, Served};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::{clocks, failed, home, mode, tell_of};
use crate::cli::VolumeArgs;
use crate::error::CliError;
use crate::output::tell;

/// What of a volume or an array is opened.
#[derive(Debug, Clone, Copy)]
pub enum How {
    Whole,
    /// The slow medium of an array, which can be read.
    SlowAlone,
}

impl How {
    /// What the flag `--slow-alone` asks for.
    pub fn of(slow_alone: bool) -> Self {
        match slow_alone {
            false => How::Whole,
            true => How::SlowAlone,
        }
    }

    /// Whether nobody can write.
    pub fn is_read_only(self) -> bool {
        matches!(self, How::SlowAlone)
    }
}

fn opened(
    home: &Home,
    args: &VolumeArgs,
    how: How,
    access: Access,
) -> Result<Box<dyn Served>, ServeError> {
    match how {
        How::Whole => served::open(home, mode(args), clocks(), access),
        How::SlowAlone => {
            let array = ArrayService::slow_alone(home.clone(), mode(args), even(clocks()))?;
            Ok(Box::new(array))
        }
    }
}

/// A volume or an array that is open, and the signals that end it.
pub struct Running {
    directory: PathBuf,
    signals: Signals,
    service: Arc<dyn Served>,
    is_closed: bool,
}

impl Running {
    /// Opens a volume or an array. From here on SIGTERM and SIGINT wait to be asked for.
    /// If nobody may write, its files need not be writable: what an opening would write stays in memory then.
    pub fn open(args: &VolumeArgs, how: How, read_only: bool) -> Result<Self, CliError> {
        let directory = args.directory.clone();
        let failed = failed(args);
        let signals = Signals::new([SIGTERM, SIGINT]);
        let signals = signals.map_err(CliError::file("handle signals for", &directory))?;
        let home = home(args);
        home.troubles().tell(Box::new(tell));
        if args.budget != Budget::default() {
            let what = "takes the memory that its array.json gives it, so --memory is of no use";
            home.demand_volume(what).map_err(&failed)?;
        }
        let opened = match opened(&home, args, how, Access::Change) {
            Err(error) if read_only && error.is_not_writable() => {
                tell(&format!("{error}: it is opened to be looked at alone"));
                opened(&home, args, how, Access::Look)
            }
            opened => opened,
        };
        let service = opened.map_err(failed)?;
        tell_of(args, service.recovered());
        service.hear(Box::new(tell));
        Ok(Running {
            directory,
            signals,
            service: service.into(),
            is_closed: false,
        })
    }

    pub fn service(&self) -> &Arc<dyn Served> {
        &self.service
    }

    /// What lets another thread end the wait for a signal.
    pub fn handle(&self) -> Handle {
        self.signals.handle()
    }

    /// Takes requests at the control socket, until the answer is dropped. A directory that cannot be written has none.
    pub fn control(&self) -> Result<Option<Control>, CliError> {
        match Control::start(Arc::clone(&self.service)) {
            Err(ServeError::File { source, .. })
                if source.kind() == io::ErrorKind::ReadOnlyFilesystem =>
            {
                tell(&format!(
                    "{} lies on a read-only file system: there is no control socket in it, so info and the other \
                     commands do not find this server",
                    self.directory.display()
                ));
                Ok(None)
            }
            started => started.map(Some).map_err(|source| self.failed(source)),
        }
    }

    /// Waits for a signal; whether one came, rather than an end of the wait.
    pub fn signalled(&mut self) -> bool {
        self.signals.forever().next().is_some()
    }

    /// Closes the volume with a checkpoint. `left` tells of clients that were cut off, if there are any.
    pub fn close(mut self, left: Option<&str>) -> Result<(), CliError> {
        self.is_closed = true;
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

impl Drop for Running {
    /// What could not be served is closed all the same: otherwise the next opening finds a volume that was not.
    fn drop(&mut self) {
        if !self.is_closed
            && let Err(error) = self.service.close()
        {
            tell(&self.failed(error.into()).to_string());
        }
    }
}
