//! Who may come in: the door against web pages that ask in somebody else's name.
//!
//! A browser lets every page send requests to this machine, and whoever owns a name can have it resolve to this machine.
//! Where no key is asked for, nothing else keeps such a page from spending the owner's credit, or from reading stored
//! conversations. So an open listener answers only who asks for a name that no stranger can own ([`origin::is_own`]), and
//! no page but those of `server.cors`. With tenants the key decides; what browsers need to read an answer is still sent
//! only to the pages of `server.cors`.

use super::refusal;
use crate::config::{Server, origin};
use crate::dialect::{Reason, Refusal};
use crate::gateway::Gateway;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// What the door says to a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It comes from no page, or from one of this very address.
    Pass,
    /// It comes from a page that may ask.
    Page(HeaderValue),
    /// It asks for a name that a stranger may own.
    ForeignHost(String),
    /// It comes from a page that may not ask.
    ForeignPage(String),
}

/// Lets requests in, or refuses them in the dialect of their path.
pub(super) async fn door(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    let config = gateway.config();
    let path = request.uri().path().to_owned();
    let verdict = judge(request.uri(), request.headers(), &config.server, config.tenants.is_none());
    let preflight = request.method() == Method::OPTIONS && is_preflight(request.headers());
    let refused = match verdict {
        Verdict::Pass if preflight => Refusal::new(
            Reason::Forbidden,
            "foreign_origin",
            "no page of this origin may ask here; add it to `server.cors`",
        ),
        Verdict::Pass => return next.run(request).await,
        Verdict::Page(origin) => {
            let mut response = if preflight { permit(request.headers()) } else { next.run(request).await };
            allow(response.headers_mut(), origin);
            return response;
        }
        Verdict::ForeignHost(host) => Refusal::new(
            Reason::Forbidden,
            "foreign_host",
            format!(
                "this gateway has no tenants and answers only who asks for its address, for localhost, or for a name that \
                 nobody else can own, and not for `{host}`; add that to `server.hosts` if it is its own"
            ),
        ),
        Verdict::ForeignPage(origin) => Refusal::new(
            Reason::Forbidden,
            "foreign_origin",
            format!(
                "this gateway has no tenants and answers no page of `{origin}`; add that to `server.cors` if it is your own"
            ),
        ),
    };
    refusal(&path, &refused)
}

/// Whether a request comes straight to a listener that answers whoever reaches it: for an address or a name of this
/// machine itself, and from no other page. `host` is the name that was asked for.
pub fn is_direct(headers: &HeaderMap) -> bool {
    let host = text(headers, header::HOST);
    let name = host.as_deref().map(origin::name_of);
    let here = name.is_none_or(|name| name.eq_ignore_ascii_case("localhost") || origin::is_address(name));
    here && text(headers, header::ORIGIN).is_none_or(|origin| is_same(&origin, host.as_deref()))
}

fn judge(uri: &Uri, headers: &HeaderMap, server: &Server, open: bool) -> Verdict {
    let authority = uri.authority().map(|authority| authority.as_str().to_owned());
    let host = text(headers, header::HOST).or_else(|| authority.clone());
    let origin = text(headers, header::ORIGIN);
    if let Some(origin) = &origin
        && server.cors.iter().any(|known| known == "*" || known == origin)
        && let Ok(value) = HeaderValue::from_str(origin)
    {
        return Verdict::Page(value);
    }
    if !open {
        return Verdict::Pass;
    }
    let asked = host.iter().chain(&authority).map(|host| origin::name_of(host));
    if let Some(foreign) = asked.into_iter().find(|name| !origin::is_own(name, &server.hosts)) {
        return Verdict::ForeignHost(short(foreign));
    }
    match origin {
        Some(origin) if is_same(&origin, host.as_deref()) => Verdict::Pass,
        Some(origin) => Verdict::ForeignPage(short(&origin)),
        // Not every request of a page has an origin, but browsers say then whose page it is.
        None => match text(headers, header::HeaderName::from_static("sec-fetch-site")).as_deref() {
            Some("cross-site" | "same-site") => Verdict::ForeignPage("another site".to_owned()),
            _ => Verdict::Pass,
        },
    }
}

// === helpers ===

/// Whether a page of `origin` was read from `host`, as far as its scheme allows: there is no TLS here, but there may be a
/// proxy that has it.
fn is_same(origin: &str, host: Option<&str>) -> bool {
    origin.split_once("://").is_some_and(|(scheme, place)| matches!(scheme, "http" | "https") && Some(place) == host)
}

/// The one value of a header; what is no text, or comes twice, is like no other value.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    let whole = values.next().is_none().then(|| value.to_str().ok()).flatten();
    Some(whole.unwrap_or("?.?").to_ascii_lowercase())
}

fn short(text: &str) -> String {
    text.chars().take(NAMED).collect()
}

fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a browser that asks beforehand: what its page may send.
fn permit(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    // The SDKs send headers of their own, more with each version: a page that may ask may send what it likes.
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    if asked.contains_key("access-control-request-private-network") {
        headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Lets the page of `origin` read the answer.
fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// What a page may read of an answer besides its body.
const EXPOSED: &str = "retry-after, x-request-id, x-should-retry, x-segue-turn, x-segue-level, x-segue-served-by, \
                       x-segue-dropped, x-segue-splices, x-segue-attempts, x-segue-estimated";
/// The most characters of a foreign name that an error repeats.
const NAMED: usize = 100;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    fn verdict(server: &Server, open: bool, pairs: &[(&str, &str)]) -> Verdict {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(header::HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        judge(&Uri::from_static("/v1/models"), &headers, server, open)
    }

    #[test]
    fn an_open_gateway_answers_no_page_of_another_place() {
        let server = Server {
            cors: vec!["https://app.example.com".to_owned()],
            hosts: vec!["llm.example.com".to_owned()],
            ..Server::default()
        };
        let host = ("host", "127.0.0.1:8080");
        for (pairs, passes) in [
            (&[host][..], true),
            (&[][..], true),
            (&[("host", "llm.example.com")][..], true),
            (&[("host", "localhost:8080"), ("origin", "http://localhost:8080")][..], true),
            (&[host, ("sec-fetch-site", "same-origin")][..], true),
            (&[host, ("origin", "https://evil.example")][..], false),
            (&[host, ("origin", "null")][..], false),
            (&[host, ("origin", "http://127.0.0.1:3000")][..], false),
            (&[host, ("origin", "ftp://127.0.0.1:8080")][..], false),
            (&[host, ("origin", "https://app.example.com.evil.example")][..], false),
            (&[host, ("origin", "http://127.0.0.1:8080"), ("origin", "https://evil.example")][..], false),
            (&[host, ("sec-fetch-site", "cross-site")][..], false),
            (&[("host", "evil.example:8080"), ("origin", "http://evil.example:8080")][..], false),
            (&[("host", "evil.example:8080")][..], false),
            (&[("host", "127.0.0.1"), ("host", "evil.example")][..], false),
        ] {
            assert_eq!(verdict(&server, true, pairs) == Verdict::Pass, passes, "{pairs:?}");
            assert_eq!(verdict(&server, false, pairs), Verdict::Pass, "with tenants the key decides: {pairs:?}");
        }
        for open in [true, false] {
            let page = verdict(&server, open, &[host, ("origin", "https://App.example.com")]);
            assert_eq!(page, Verdict::Page(HeaderValue::from_static("https://app.example.com")));
        }
    }

    #[test]
    fn a_host_in_the_target_counts_too() {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("127.0.0.1"))]);
        let verdict = judge(&Uri::from_static("http://evil.example/v1/models"), &headers, &Server::default(), true);
        assert_eq!(verdict, Verdict::ForeignHost("evil.example".to_owned()));
    }
}
