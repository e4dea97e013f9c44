//! Headers of requests to providers: which a connection may set, and which say who asks.

use http::{HeaderName, HeaderValue, header};

/// A header of the configuration.
///
/// # Errors
/// What is wrong with it, to follow its place.
pub(super) fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(name).map_err(|_| "this is no header name".to_owned())?;
    if is_reserved(&name) {
        return Err("Segue sets this header itself; take it out".to_owned());
    }
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| "a header's value is visible ASCII; look for a line end in its source".to_owned())?;
    value.set_sensitive(is_credential(&name));
    Ok((name, value))
}

/// Headers that belong to one connection, or that decide how a body is read: nobody but this file sets them.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    const RESERVED: [HeaderName; 12] = [
        header::ACCEPT,
        header::ACCEPT_ENCODING,
        header::CONNECTION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::EXPECT,
        header::HOST,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    RESERVED.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "http2-settings")
}

/// Headers that say who asks.
pub(super) fn is_credential(name: &HeaderName) -> bool {
    const CREDENTIALS: [HeaderName; 3] = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE];
    CREDENTIALS.contains(name) || matches!(name.as_str(), "x-api-key" | "api-key" | "x-goog-api-key")
}
