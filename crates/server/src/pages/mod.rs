//! The pages for people: an inbox of open questions, and the page where one is decided.

mod console;
mod questions;

pub(crate) use console::{asset, handoff, missing, shell};
pub(crate) use questions::{count_open_questions, questions};
