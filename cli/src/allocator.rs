//! One setting of the system's allocator.

/// Allocations from this length on come from the system one by one, and go back to it when they are dropped.
const LARGE_BYTES: i32 = 1 << 20;

/// Makes large bodies go back to the system when they are dropped, as a memory budget wants it.
///
/// Left to itself, glibc raises this threshold to the largest block that was ever freed, and from then on keeps the
/// room of large bodies in its arenas: consuming 168 MB of countries with a budget of 96 MiB then peaks at 222 MiB, and
/// with the threshold held at 133 MiB (measured by the benchmark `memory`). The variable `MALLOC_MMAP_THRESHOLD_` does
/// the same, but only for those who know it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "the C library offers this setting only as a plain function; see above for what it is worth")]
pub(crate) fn give_large_blocks_back() {
    // SAFETY: mallopt takes two integers, keeps no pointer, and is called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_large_blocks_back() {
    let _ = LARGE_BYTES;
}
