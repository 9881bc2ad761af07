//! Tools against third-party servers and descriptions, and the permitted destinations of requests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod extending;
mod graphql;
mod openapi_calls;
mod openapi_directory;
mod openapi_files;
mod ranking;
mod reach;
