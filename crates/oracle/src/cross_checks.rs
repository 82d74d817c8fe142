//! Checks of the models against each other and against the rules of flash (tests only).
