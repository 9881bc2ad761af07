//! `/api/sign-in`: a link that lets a person's browser in.

use crate::{Error, HttpClient};
use hyper::Method;
use serde::Deserialize;

#[derive(Deserialize)]
struct Made {
    code: String,
}

impl HttpClient {
    /// The address of a page with a code that signs a browser in, once. `path` begins with `/`.
    pub async fn sign_in_link(&self, path: &str) -> Result<String, Error> {
        let made: Made = self.asked(Method::POST, "/api/sign-in/codes", None).await?;
        Ok(format!("{}{path}#code={}", self.base_url(), made.code))
    }
}
