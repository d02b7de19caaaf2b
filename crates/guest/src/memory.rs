//! The boundary to the host: functions that it offers, and slices over what it wrote into this module's memory.
//!
//! Everything unsafe in this crate is here. What makes it right is the host's promise (ABI.md): the addresses in a frame lie
//! in this memory, are aligned, hold as many rows as the frame says, and nobody writes there while a call runs.
#![allow(unsafe_code, reason = "memory that the host wrote is known by address only")]

/// What a call is told: the addresses of everything, as ABI.md lists them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) rows: u32,
    pub(crate) asked: u32,
    pub(crate) asked_rows: u32,
    pub(crate) columns: u32,
    pub(crate) pod: u32,
    pub(crate) texts: u32,
    pub(crate) text_count: u32,
    pub(crate) scores: u32,
    pub(crate) verdicts: u32,
    pub(crate) reasons: u32,
}

/// Reads a frame.
pub(crate) fn frame(at: u32) -> Frame {
    // SAFETY: the host hands the address of a frame to each call.
    unsafe { std::ptr::read(at as usize as *const Frame) }
}

/// Types of which any bits are a value.
pub(crate) trait Plain: Copy + 'static {}
impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for i64 {}
impl Plain for f64 {}
impl Plain for u64 {}
impl Plain for crate::Text {}

/// What the host wrote at an address.
pub(crate) fn slice<T: Plain>(at: u32, count: u32) -> &'static [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the host's promise, see above. Any bits are a value of T.
    unsafe { std::slice::from_raw_parts(at as usize as *const T, count as usize) }
}

/// Where the host wants an answer.
pub(crate) fn slice_mut<T: Plain>(at: u32, count: u32) -> &'static mut [T] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: the host's promise, see above; and each answer has a place of its own, which is taken once in a call.
    unsafe { std::slice::from_raw_parts_mut(at as usize as *mut T, count as usize) }
}

/// Gives the host room in this memory, for good: it asks for what it needs once, and keeps it.
pub fn allocate(bytes: u32) -> u32 {
    // Words, so that it is aligned; and filled, so that there is nothing unknown in it.
    let words = vec![0_u64; (bytes as usize).div_ceil(8)];
    Box::leak(words.into_boxed_slice()).as_mut_ptr() as usize as u32
}

/// Lets a panic tell the host what it was about.
pub fn panic_says_why() {
    std::panic::set_hook(Box::new(|panic| host::fail(&panic.to_string())));
}

/// The functions of the host.
#[cfg(target_arch = "wasm32")]
pub(crate) mod host {
    #[link(wasm_import_module = "supercargo")]
    unsafe extern "C" {
        #[link_name = "node_column"]
        safe fn import_node_column(at: *const u8, length: u32, form: u32) -> u32;
        #[link_name = "pod_fact"]
        safe fn import_pod_fact(at: *const u8, length: u32, form: u32) -> u32;
        #[link_name = "intern"]
        safe fn import_intern(at: *const u8, length: u32) -> u32;
        #[link_name = "fail"]
        safe fn import_fail(at: *const u8, length: u32);
        #[link_name = "log"]
        safe fn import_log(level: u32, at: *const u8, length: u32);
    }

    pub(crate) fn node_column(attribute: &str, form: u32) -> u32 {
        import_node_column(attribute.as_ptr(), attribute.len() as u32, form)
    }

    pub(crate) fn pod_attribute(attribute: &str, form: u32) -> u32 {
        import_pod_fact(attribute.as_ptr(), attribute.len() as u32, form)
    }

    pub(crate) fn intern(text: &str) -> u32 {
        import_intern(text.as_ptr(), text.len() as u32)
    }

    pub(crate) fn fail(message: &str) {
        import_fail(message.as_ptr(), message.len() as u32);
    }

    pub(crate) fn log(level: u32, line: &str) {
        import_log(level, line.as_ptr(), line.len() as u32);
    }
}

/// Where there is no host, [`crate::testing`] stands in for it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod host {
    pub(crate) use crate::testing::host::{fail, intern, log, node_column, pod_attribute};
}
