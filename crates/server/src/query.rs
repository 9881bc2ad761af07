//! The query string, and the id in a path.

use crate::error::RequestError;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::str::FromStr;

/// The query's members; the last one if a name is repeated.
#[derive(Debug, Default)]
pub(crate) struct QueryMembers(BTreeMap<String, String>);

impl QueryMembers {
    pub(crate) fn text_member(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Parses a member, such as a number.
    pub(crate) fn get<T: FromStr>(
        &self,
        name: &str,
        form: &str,
    ) -> Result<Option<T>, RequestError> {
        let read = |text: &str| {
            text.parse().map_err(|_| {
                RequestError::bad_request(format!("The query's {name} must be {form}."))
            })
        };
        self.text_member(name).map(read).transpose()
    }
}

impl<S: Sync> FromRequestParts<S> for QueryMembers {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

/// The path segment that names something.
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| RequestError::no_route("this path"))
    }
}
