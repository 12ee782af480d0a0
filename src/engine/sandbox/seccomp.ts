import { BoughError } from "../../errors.ts";

/** `linux.seccomp` of the OCI runtime specification. */
interface Seccomp {
  defaultAction: "SCMP_ACT_ERRNO";
  defaultErrnoRet: number;
  architectures: readonly string[];
  syscalls: readonly SeccompRule[];
}

interface SeccompRule {
  names: readonly string[];
  action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  errnoRet?: number;
  args?: readonly { index: number; value: number; valueTwo?: number; op: string }[];
}

/** The filters made so far. Nearly every command has the same one. */
const made = new Map<string, Seccomp>();

/**
 * Returns Docker's default system call filter for processes with these capabilities. runc compiles it again for each container,
 * so it has one rule where Docker's profile has several. The architecture is spelt as in the OCI image specification.
 */
export function seccompFilter(architecture: string, capabilities: readonly string[]): Seccomp {
  const key = [architecture, ...capabilities].join(" ");
  const filter = made.get(key) ?? makeFilter(architecture, capabilities);
  made.set(key, filter);
  return filter;
}

function makeFilter(architecture: string, capabilities: readonly string[]): Seccomp {
  const machine = architectures[architecture];
  if (machine === undefined) throw new BoughError(`there is no filter of system calls for ${architecture}`);
  const isNeeded = ({ unlessCapability = "" }) => !capabilities.includes(unlessCapability);
  const allowed = new Set([
    ...allowedCalls,
    ...machine.calls,
    ...capabilities.flatMap((capability) => callsOfCapabilities[capability] ?? []),
  ]);
  const { names, errorNumber } = missingCalls;
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: operationNotPermitted,
    architectures: machine.names,
    syscalls: [
      { names: [...allowed].sort(), action: "SCMP_ACT_ALLOW" },
      ...conditionalCalls
        .filter(isNeeded)
        .map((call): SeccompRule => ({ ...conditionOf(call), action: "SCMP_ACT_ALLOW" })),
      ...[missingCalls]
        .filter(isNeeded)
        .map((): SeccompRule => ({ names, action: "SCMP_ACT_ERRNO", errnoRet: errorNumber })),
    ],
  };
}

/**
 * Returns the same filter the other way round, for a runtime that adds no rule for unknown calls: these fail with ENOSYS by default,
 * and known ones with EPERM by name.
 */
export function invertedFilter(architecture: string, capabilities: readonly string[]): Seccomp {
  const filter = seccompFilter(architecture, capabilities);
  const named = new Set(filter.syscalls.flatMap(({ names }) => names));
  const known = [...Object.values(callsOfCapabilities).flat(), ...unnamedCalls];
  const refusal = { action: "SCMP_ACT_ERRNO", errnoRet: operationNotPermitted } as const;
  return {
    ...filter,
    defaultErrnoRet: missingCalls.errorNumber,
    syscalls: [
      ...filter.syscalls.filter(({ action }) => action === "SCMP_ACT_ALLOW"),
      { ...refusal, names: [...new Set(known)].filter((name) => !named.has(name)).sort() },
      ...refusedArguments
        .filter(({ name }) => !filter.syscalls[0]?.names.includes(name))
        .map((call): SeccompRule => ({ ...refusal, ...conditionOf(call) })),
    ],
  };
}

function conditionOf({ name, operator, value, mask }: (typeof refusedArguments)[number]) {
  // A masked comparison takes the mask first.
  const compared = mask === undefined ? { value } : { value: mask, valueTwo: value };
  return { names: [name], args: [{ index: 0, ...compared, op: `SCMP_CMP_${operator}` }] };
}

/**
 * The system calls that Docker's default profile allows a container, as facts: names, conditions and error numbers of
 * github.com/moby/profiles, seccomp/default.json, at commit cd3bed8061c7b7378b61fc6827c7885779417a75 (30 June 2026).
 * /usr/share/containers/seccomp.json of Debian's containers packages is Podman's profile, which allows making namespaces.
 *
 * All other calls fail with EPERM, but those that the runtime's library does not know with ENOSYS: a C library that tries a new call
 * then falls back to an old one. runc adds that rule; crun gets the calls to refuse by name.
 */

/** Calls that are always allowed. Docker allows `ptrace` and its kind from Linux 4.8 on (before, they bypass filters); bough needs 5.11. */
const allowedCalls = words(`
  _llseek _newselect accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown
  chown32 clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
  clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3
  epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
  eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fanotify_mark
  fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock
  fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex
  futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu
  getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer
  getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32
  getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr getxattrat
  inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents
  io_pgetevents_time64 io_setup io_submit ioctl ioprio_get ioprio_set ipc kill landlock_add_rule
  landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listmount listxattr
  listxattrat llistxattr lremovexattr lseek lsetxattr lstat lstat64 madvise map_shadow_stack membarrier
  memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 mprotect
  mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64
  mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep
  newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect
  poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv
  process_vm_writev pselect6 pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readlink readlinkat
  readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr removexattrat rename renameat
  renameat2 restart_syscall riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
  rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max
  sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
  sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield
  seccomp select semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto
  set_robust_list set_thread_area set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32
  setgroups setgroups32 setitimer setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid
  setresuid32 setreuid setreuid32 setrlimit setsid setsockopt setuid setuid32 setxattr setxattrat shmat shmctl
  shmdt shmget shutdown sigaltstack signalfd signalfd4 sigprocmask sigreturn socketcall socketpair splice stat
  stat64 statfs statfs64 statmount statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time
  timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64
  timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate
  truncate64 ugetrlimit umask uname unlink unlinkat uretprobe utime utimensat utimensat_time64 utimes vfork
  vmsplice wait4 waitid waitpid write writev
`);

/** Calls that a capability allows. */
const callsOfCapabilities: Readonly<Record<string, readonly string[]>> = {
  CAP_BPF: words("bpf"),
  CAP_DAC_READ_SEARCH: words("open_by_handle_at"),
  CAP_PERFMON: words("perf_event_open"),
  CAP_SYS_ADMIN: words(`
  bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie lsm_get_self_attr lsm_list_modules
  lsm_set_self_attr mount mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname
  setns syslog umount umount2 unshare
`),
  CAP_SYS_BOOT: words("reboot"),
  CAP_SYS_CHROOT: words("chroot"),
  CAP_SYS_MODULE: words("delete_module finit_module init_module"),
  CAP_SYS_NICE: words("get_mempolicy mbind set_mempolicy set_mempolicy_home_node"),
  CAP_SYS_PACCT: words("acct"),
  CAP_SYS_PTRACE: words("kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace"),
  CAP_SYS_RAWIO: words("ioperm iopl"),
  CAP_SYS_TIME: words("clock_settime clock_settime64 settimeofday stime"),
  CAP_SYS_TTY_CONFIG: words("vhangup"),
  CAP_SYSLOG: words("syslog"),
};

/** The architectures that bough is built for, each with those whose programs it can run. */
const architectures: Readonly<
  Record<string, { names: readonly string[]; calls: readonly string[] } | undefined>
> = {
  // Docker's profile also has SCMP_ARCH_X32. Almost no kernel supports it, and it adds 6 ms to the start of a container. Such a
  // call ends the program.
  amd64: { names: ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"], calls: words("arch_prctl modify_ldt") },
  arm64: {
    names: ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
    calls: words("arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2"),
  },
};

/** Calls that are allowed if their first argument passes the comparison, after `mask` is applied. */
const conditionalCalls: readonly {
  name: string;
  operator: "LT" | "EQ" | "GT" | "MASKED_EQ";
  value: number;
  mask?: number;
  /** A process that has this capability needs no condition. */
  unlessCapability?: string;
}[] = [
  // All address families but AF_ALG (38) and AF_VSOCK (40).
  { name: "socket", operator: "LT", value: 38 },
  { name: "socket", operator: "EQ", value: 39 },
  { name: "socket", operator: "GT", value: 40 },
  // PER_LINUX, PER_LINUX32, UNAME26, PER_LINUX32 with UNAME26, and the query for the current value.
  { name: "personality", operator: "EQ", value: 0x0 },
  { name: "personality", operator: "EQ", value: 0x8 },
  { name: "personality", operator: "EQ", value: 0x20000 },
  { name: "personality", operator: "EQ", value: 0x20008 },
  { name: "personality", operator: "EQ", value: 0xffffffff },
  // Without any of the CLONE_NEW flags (CLONE_NEWTIME shares its bit with the signal's number).
  { name: "clone", operator: "MASKED_EQ", mask: 0x7e020000, value: 0, unlessCapability: "CAP_SYS_ADMIN" },
];

/** The refused arguments of the same calls: each of them matches at least one of these rules, and no allowed one does. */
const refusedArguments: readonly Pick<
  (typeof conditionalCalls)[number],
  "name" | "operator" | "value" | "mask"
>[] = [
  { name: "socket", operator: "EQ", value: 38 },
  { name: "socket", operator: "EQ", value: 40 },
  ...bits(0x7e020000).map(
    (bit) => ({ name: "clone", operator: "MASKED_EQ", mask: bit, value: bit }) as const,
  ),
  // Somewhere in the circle of its 32 bits, each number but 0 and 0xffffffff has a bit whose next one is not set. The bits 3 and 17
  // may be set alone.
  ...bits(0xffffffff).map((bit) => {
    const next = bit === 2 ** 31 ? 1 : bit * 2;
    const value = bit === 0x8 || bit === 0x20000 ? bit + bit / 2 : bit;
    return { name: "personality", operator: "MASKED_EQ", mask: value + next, value } as const;
  }),
];

/** Calls of Linux that the profile does not name, as libseccomp 2.5.4 spells them. */
const unnamedCalls = words(`
  _sysctl add_key afs_syscall bdflush break create_module ftime get_kernel_syms get_tls getpmsg gtty idle io_uring_enter
  io_uring_register io_uring_setup kexec_file_load kexec_load keyctl lock migrate_pages move_pages mpx nfsservctl nice oldfstat
  oldlstat oldolduname oldstat olduname pciconfig_iobase pciconfig_read pciconfig_write pivot_root prof profil putpmsg
  query_module readdir request_key security sgetmask sigaction signal sigpending sigsuspend ssetmask stty swapoff swapon sysfs
  tuxcall ulimit uselib userfaultfd usr26 usr32 ustat vm86 vm86old vserver
`);

const operationNotPermitted = 1;

/** Filters can't read the flags of `clone3`, which are in memory. C libraries use `clone` if it is missing (ENOSYS). */
const missingCalls = { names: ["clone3"], errorNumber: 38, unlessCapability: "CAP_SYS_ADMIN" };

/** Returns the powers of two of which a number is the sum. */
function bits(number: number): number[] {
  return Array.from({ length: 32 }, (_, index) => 2 ** index).filter(
    (bit) => Math.floor(number / bit) % 2 === 1,
  );
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
