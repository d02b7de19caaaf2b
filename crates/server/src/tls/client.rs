//! Who a client certificate speaks for. That it is genuine has been checked in the handshake.

use x509_cert::{
    Certificate,
    der::{Decode, Tag, Tagged, asn1::ObjectIdentifier},
};

use crate::access::UserInfo;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// The common name is the user, the organizations are the groups. `None` if there is no name to go by.
pub(crate) fn user_of(certificate: &[u8]) -> Option<UserInfo> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let mut user = UserInfo::default();
    for attribute in certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter()) {
        let text = match attribute.value.tag() {
            Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => attribute.value.value(),
            _ => continue,
        };
        let text = String::from_utf8(text.to_vec()).ok()?;
        match attribute.oid {
            COMMON_NAME => user.name = text,
            ORGANIZATION => user.groups.push(text),
            _ => {}
        }
    }
    (!user.name.is_empty()).then_some(user)
}
