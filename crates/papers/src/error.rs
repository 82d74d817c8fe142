//! What can be wrong with an experiment.

use flashlore_characterize::CharacterizeError;
use flashlore_sim::config::ConfigError;
use flashlore_sim::engine::RunError;
use flashlore_synth::ProfileError;

use crate::definition::EXPECTED_SCALE;

/// An experiment that cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// A paper that is not among those that come with the program.
    #[error("there is no experiment '{name}'; expected one of {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A definition that cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A definition that does not say what a quick look is.
    #[error("{paper} has no section [quick]: expected --scale and --figure instead of --quick")]
    NoQuick {
        /// The paper.
        paper: String,
    },
    /// A figure that no check belongs to.
    #[error("no check of {paper} belongs to figure '{figure}'; expected one of {known}")]
    UnknownFigure {
        /// The paper.
        paper: String,
        /// What was asked for.
        figure: String,
        /// The figures that have checks.
        known: String,
    },
    /// A scale that no device can be built at.
    #[error("scale {found}: {}", EXPECTED_SCALE)]
    Scale {
        /// What was asked for.
        found: f64,
    },
    /// Text that is no definition.
    #[error("{paper}: {source}")]
    Syntax {
        /// The paper.
        paper: String,
        /// What the parser says.
        source: Box<toml_edit::de::Error>,
    },
    /// A definition that contradicts itself.
    #[error("{paper}: {place}: {message}")]
    Definition {
        /// The paper.
        paper: String,
        /// The workload, check or expression.
        place: String,
        /// What was found and what was expected.
        message: String,
    },
    /// A capture without a place to look for it.
    #[error(
        "workload {workload} replays the capture {capture}: expected --captures with the directory of \
         {capture}.fiu.xz"
    )]
    NoCaptures {
        /// The workload.
        workload: String,
        /// The capture.
        capture: String,
    },
    /// A profile that cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A configuration that cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A workload that cannot be laid out.
    #[error(transparent)]
    Trace(#[from] flashlore_trace::Error),
    /// Values that cannot be counted.
    #[error(transparent)]
    Characterize(#[from] CharacterizeError),
    /// A run that cannot begin or go on.
    #[error("run {run}: {source}")]
    Run {
        /// Its name.
        run: String,
        /// Why.
        source: Box<RunError>,
    },
}
