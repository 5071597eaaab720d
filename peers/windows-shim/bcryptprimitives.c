/* bcryptprimitives.dll for releases of Wine that have none: Rust's standard library takes its random octets from it. */
#include <windows.h>
#include <ntsecapi.h> /* RtlGenRandom, which advapi32.dll exports as SystemFunction036 */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE octets, SIZE_T count)
{
    for (ULONG some; count > 0; octets += some, count -= some) {
        some = count < 0x10000 ? (ULONG)count : 0x10000;
        if (!RtlGenRandom(octets, some)) return FALSE;
    }
    return TRUE;
}
