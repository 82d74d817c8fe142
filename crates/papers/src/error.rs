//! What can be wrong with an experiment.

use flashlore_characterize::CharacterizeError;
use flashlore_sim::config::ConfigError;
use flashlore_sim::engine::RunError;
use flashlore_synth::ProfileError;

use crate::definition::EXPECTED_SCALE;

#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    #[error("there is no experiment '{name}'; expected one of {known}")]
    Unknown { name: String, known: String },
    #[error("{path}: {source}")]
    File {
        path: String,
        source: std::io::Error,
    },
    #[error("{paper} has no section [quick]: expected --scale and --figure instead of --quick")]
    NoQuick { paper: String },
    #[error("no claim of {paper} belongs to figure '{figure}'; expected one of {known}")]
    UnknownFigure {
        paper: String,
        figure: String,
        known: String,
    },
    #[error("scale {found}: {}", EXPECTED_SCALE)]
    Scale { found: f64 },
    #[error(
        "--traces with scale {scale}: expected whole traces on whole devices, without --scale and --quick"
    )]
    ScaledOriginals { scale: f64 },
    #[error("{paper}: {source}")]
    Syntax {
        paper: String,
        source: Box<toml_edit::de::Error>,
    },
    #[error("{paper}: {place}: {message}")]
    Definition {
        paper: String,
        /// The workload, claim or expression.
        place: String,
        message: String,
    },
    #[error(
        "workload {workload} replays the capture {capture}: expected --captures with the directory of \
         {capture}.fiu.xz"
    )]
    NoCaptures { workload: String, capture: String },
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Trace(#[from] flashlore_trace::Error),
    #[error(transparent)]
    Characterize(#[from] CharacterizeError),
    #[error("run {run}: {source}")]
    Run { run: String, source: Box<RunError> },
}
