//! The page, its style and its scripts.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};

/// Scripts and styles come from this server only, and pages of others can neither embed the console nor be its target.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers of all answers.
pub(crate) const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The path of each file, its media type and its content.
const FILES: [(&str, &str, &str); 15] = [
    ("/", HTML, include_str!("../static/index.html")),
    ("/console.css", CSS, include_str!("../static/console.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../static/icon.svg")),
    ("/app.js", SCRIPT, include_str!("../static/app.js")),
    ("/api.js", SCRIPT, include_str!("../static/api.js")),
    ("/dom.js", SCRIPT, include_str!("../static/dom.js")),
    ("/names.js", SCRIPT, include_str!("../static/names.js")),
    ("/object.js", SCRIPT, include_str!("../static/object.js")),
    ("/editors.js", SCRIPT, include_str!("../static/editors.js")),
    ("/offers.js", SCRIPT, include_str!("../static/offers.js")),
    ("/channels.js", SCRIPT, include_str!("../static/channels.js")),
    ("/images.js", SCRIPT, include_str!("../static/images.js")),
    ("/servers.js", SCRIPT, include_str!("../static/servers.js")),
    ("/load.js", SCRIPT, include_str!("../static/load.js")),
    ("/log.js", SCRIPT, include_str!("../static/log.js")),
];

/// The paths of the files.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, ..)| *path)
}

/// The file of a request for one of the [`paths`].
pub(crate) async fn file(uri: Uri) -> Response {
    let (_, media_type, content) = FILES.iter().find(|(path, ..)| *path == uri.path()).unwrap_or(&FILES[0]);
    ([(CONTENT_TYPE, *media_type)], *content).into_response()
}
