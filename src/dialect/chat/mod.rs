//! chat

use super::{Decode, Dialect, Encode, Expect, Refusal, Reply, WireRequest};
use crate::chat::{DialectId, Request};
use crate::event::Step;
use crate::failure::Failure;
use crate::routing::Target;
use crate::turn::resume::{Carry, How};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The dialect.
#[derive(Debug)]
pub struct Chat;

impl Dialect for Chat {
    fn id(&self) -> DialectId {
        DialectId::Chat
    }
    fn encode(&self, _: &Request, _: &Target, _: &Carry) -> Result<WireRequest, Failure> {
        unimplemented!()
    }
    fn authorize(&self, _: Option<&str>, _: Option<&str>) -> Vec<(HeaderName, HeaderValue)> {
        unimplemented!()
    }
    fn classify(&self, _: u16, _: &HeaderMap, _: &[u8]) -> Failure {
        unimplemented!()
    }
    fn decoder(&self, _: Expect) -> Box<dyn Decode> {
        unimplemented!()
    }
    fn whole(&self, _: &[u8], _: Expect) -> Result<Vec<Step>, Failure> {
        unimplemented!()
    }
    fn how(&self, _: &str) -> How {
        unimplemented!()
    }
    fn echoes(&self, _: &str) -> bool {
        unimplemented!()
    }
    fn default_base_url(&self) -> &'static str {
        unimplemented!()
    }
    fn version_segment(&self) -> &'static str {
        unimplemented!()
    }
    fn parse(&self, _: &HeaderMap, _: &[u8]) -> Result<Request, Refusal> {
        unimplemented!()
    }
    fn encoder(&self, _: &Request) -> Box<dyn Encode> {
        unimplemented!()
    }
    fn refuse(&self, _: &Refusal) -> Reply {
        unimplemented!()
    }
}
