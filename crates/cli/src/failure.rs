//! How a command ends.

use std::{io, process::ExitCode};

use supercargo_manifest::{Problem, Problems};

use crate::output::Console;

/// Something was found that should not be.
pub(crate) const FOUND: u8 = 1;
/// The command could not do its work.
pub(crate) const CANNOT: u8 = 2;

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All is well.
    Well,
    /// Something was found that should not be.
    Found,
    /// A part of the work could not be done; what was wrong has been told.
    Incomplete,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Well => Self::SUCCESS,
            Ending::Found => Self::from(FOUND),
            Ending::Incomplete => Self::from(CANNOT),
        }
    }
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something is wrong with what it was given.
    Input(Problems),
    /// What it had to say could not be written.
    Output(io::Error),
}

impl Failure {
    /// Tells people, and gives the exit code.
    pub(crate) fn tell(self, console: &mut Console) -> ExitCode {
        match self {
            // Whoever read our output has seen enough, as in `supercargo … | head`.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(error) => console.problems(&Problem::error(format!("cannot write: {error}")).into()),
            Self::Input(problems) => console.problems(&problems),
        }
        ExitCode::from(CANNOT)
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Input(problems)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Input(problem.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
