//! `/api/settings`: the settings of every server of this data directory. For administrators.

use super::{json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::{RequestError, capitalised};
use crate::settings::{
    SettingAuthor, SettingChange, SettingName, SettingsError, SettingsRegistry, StoredSetting,
};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use protocols::executor::{member, members};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /api/settings`.
pub(crate) async fn list_settings(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let settings = registry(&app)?.list_settings().await?;
    let settings: Vec<_> =
        settings.iter().map(|(name, setting)| setting_json(*name, setting)).collect();
    Ok(json_response(StatusCode::OK, &json!({ "settings": settings })))
}

/// `GET /api/settings/history`.
pub(crate) async fn history(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let changes = registry(&app)?.history().await?;
    let changes: Vec<_> = changes.iter().map(shown_change).collect();
    Ok(json_response(StatusCode::OK, &json!({ "changes": changes })))
}

/// `POST /api/settings {name, value}`.
pub(crate) async fn set(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let name: Option<String> = member(&members, "name", "a string")?;
    let value: Option<String> = member(&members, "value", "a string")?;
    let name: SettingName = name
        .unwrap_or_default()
        .parse()
        .map_err(|why: String| RequestError::bad_request(capitalised(&why)))?;
    let author = SettingAuthor { by: format!("token {}", caller.name.0), at: app.clock.now() };
    let applied = registry(&app)?.set(name, &value.unwrap_or_default(), &author).await?;
    app.apply_setting(applied.name, &applied.setting.value);
    let mut shown = setting_json(applied.name, &applied.setting);
    shown["live"] = applied.is_live.into();
    Ok(json_response(StatusCode::OK, &shown))
}

fn registry(app: &AppState) -> Result<&SettingsRegistry, RequestError> {
    let missing = || RequestError::conflict("This server has no data directory with settings.");
    app.settings.as_ref().ok_or_else(missing)
}

fn setting_json(name: SettingName, setting: &StoredSetting) -> Value {
    let StoredSetting { value, by, at } = setting;
    json!({ "name": name.name(), "value": value.to_string(), "by": by, "at": at.0 })
}

fn shown_change(change: &SettingChange) -> Value {
    json!({
        "name": change.name,
        "old": change.old.as_ref().map(ToString::to_string),
        "new": change.new.to_string(),
        "by": change.by,
        "at": change.at.0,
    })
}

impl From<SettingsError> for RequestError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Refused(why) => Self::bad_request(capitalised(&why)),
            SettingsError::Store(error) => engine::Fault::from(error).into(),
            other @ (SettingsError::File(..)
            | SettingsError::Unreadable(_)
            | SettingsError::Directory(_)) => Self::broken(&other),
        }
    }
}
