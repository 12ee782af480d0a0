/** Options of `docker run` and `podman run` that `bough run` lacks. */
import { type ForeignOption, foreignOptions } from "../command-line/foreign-options.ts";

const ports = "No ports are published: with --network host a command listens on this machine's network.";
const noNames =
  "Commands have no names: `bough ps` lists ids; with -S KEY the result is that session's image.";
const noContainer = "a command is not a container that other commands could find";
const capabilities =
  "A command has docker's default capabilities and filter of system calls: there are no others.";
const devices = "A command has no devices of this machine.";
const dns = "Commands use this machine's name servers; --add-host NAME:IP adds a name.";
const networks = "bough creates no networks: --network takes default, none or host.";
const namespaces = "A command has namespaces of its own; --network host shares this machine's network.";
const cpus = "--cpus NUMBER limits the processors of a command.";
const memory = "--memory SIZE limits a command's memory, swap included.";
const volumes = "-v DIR:PATH[:ro] mounts a directory of this machine; there are no named volumes.";
const disks = "bough does not limit the speed of disks.";
const health = "bough runs no health checks";
const logs = "`bough logs` prints what a command has written";
const groups = "-u USER:GROUP sets the group of a command.";

export const dockerRun: readonly ForeignOption[] = [
  ["--annotation KEY=VALUE", "ignored", noContainer],
  ["-a, --attach STREAM", "refused", "Both output streams are attached; what is piped in is standard input."],
  ["--blkio-weight N", "refused", disks],
  ["--blkio-weight-device LIST", "refused", disks],
  ["--cap-add CAPABILITY", "refused", capabilities],
  ["--cap-drop CAPABILITY", "refused", capabilities],
  ["--cgroup-parent NAME", "refused", "The engine makes the control groups itself."],
  ["--cgroupns MODE", "refused", namespaces],
  ["--cidfile FILE", "refused", "`bough run -d` prints the operation's id: bough run -d IMAGE > FILE"],
  ["--cpu-period N", "refused", cpus],
  ["--cpu-quota N", "refused", cpus],
  ["--cpu-rt-period N", "refused", cpus],
  ["--cpu-rt-runtime N", "refused", cpus],
  ["-c, --cpu-shares N", "refused", cpus],
  ["--cpuset-cpus LIST", "refused", cpus],
  ["--cpuset-mems LIST", "refused", cpus],
  ["--detach-keys KEYS", "ignored", "a terminal cannot be detached"],
  ["--device PATH", "refused", devices],
  ["--device-cgroup-rule RULE", "refused", devices],
  ["--device-read-bps LIST", "refused", disks],
  ["--device-read-iops LIST", "refused", disks],
  ["--device-write-bps LIST", "refused", disks],
  ["--device-write-iops LIST", "refused", disks],
  ["--disable-content-trust", "ignored", "images are identified by what they contain"],
  ["--dns IP", "refused", dns],
  ["--dns-option OPTION", "refused", dns],
  ["--dns-opt OPTION", "refused", dns],
  ["--dns-search DOMAIN", "refused", dns],
  ["--domainname NAME", "refused", "--hostname NAME takes a name with its domain."],
  ["--expose PORT", "ignored", "it publishes nothing"],
  ["--gpus GPUS", "refused", devices],
  ["--group-add GROUP", "refused", groups],
  ["--health-cmd COMMAND", "ignored", health],
  ["--health-interval TIME", "ignored", health],
  ["--health-retries N", "ignored", health],
  ["--health-start-interval TIME", "ignored", health],
  ["--health-start-period TIME", "ignored", health],
  ["--health-timeout TIME", "ignored", health],
  ["--init", "ignored", "what a command leaves behind ends with it"],
  ["--ip IP", "refused", networks],
  ["--ip6 IP", "refused", networks],
  ["--ipc MODE", "refused", `${namespaces} --shm-size SIZE sets the size of /dev/shm.`],
  ["--isolation KIND", "refused", namespaces],
  ["--kernel-memory SIZE", "refused", memory],
  ["-l, --label KEY=VALUE", "ignored", noContainer],
  ["--label-file FILE", "ignored", noContainer],
  ["--link NAME", "refused", networks],
  ["--link-local-ip IP", "refused", networks],
  ["--log-driver NAME", "ignored", logs],
  ["--log-opt OPTION", "ignored", logs],
  ["--mac-address ADDRESS", "refused", networks],
  ["--memory-reservation SIZE", "refused", memory],
  ["--memory-swap SIZE", "refused", memory],
  ["--memory-swappiness N", "refused", memory],
  ["--mount SPEC", "refused", volumes],
  ["--name NAME", "refused", noNames],
  ["--net NETWORK", "refused", "Write --network: it takes default, none or host."],
  ["--network-alias NAME", "refused", networks],
  ["--net-alias NAME", "refused", networks],
  ["--no-healthcheck", "ignored", health],
  ["--oom-kill-disable", "refused", memory],
  ["--oom-score-adj N", "ignored", "the engine chooses what ends first when memory is short"],
  ["--pid MODE", "refused", namespaces],
  ["--privileged", "refused", capabilities],
  ["-p, --publish PORTS", "refused", ports],
  ["-P, --publish-all", "refused", ports],
  [
    "--read-only",
    "refused",
    "Leave it out: what a command writes is thrown away. -v DIR:PATH:ro mounts read-only.",
  ],
  ["--restart POLICY", "refused", "A command runs once; `bough wait` waits for its end."],
  ["--runtime NAME", "refused", "BOUGH_RUNTIME chooses runc or crun."],
  ["--security-opt OPTION", "refused", capabilities],
  ["--sig-proxy", "ignored", "an interruption cancels the command"],
  ["--stop-signal SIGNAL", "ignored", "`bough kill` ends a command at once"],
  ["--stop-timeout SECONDS", "ignored", "`bough kill` ends a command at once"],
  [
    "--storage-opt OPTION",
    "refused",
    "The engine stores layers in its own way; `bough help disk` has its limits.",
  ],
  ["--sysctl SETTING", "refused", "Kernel parameters cannot be set for a command."],
  ["--tmpfs PATH", "refused", "What a command writes is thrown away; /dev/shm is in memory (--shm-size)."],
  ["--use-api-socket", "refused", "There is no docker daemon."],
  ["--userns MODE", "refused", namespaces],
  ["--uts MODE", "refused", `${namespaces} --hostname NAME sets the host name.`],
  ["--volume-driver NAME", "refused", volumes],
  ["--volumes-from NAME", "refused", volumes],
];

export const podmanRun: readonly ForeignOption[] = [
  ["--authfile FILE", "refused", "`bough images import` takes it."],
  ["--env-host", "refused", "-e NAME passes a variable of this machine."],
  ["--http-proxy", "refused", "-e HTTP_PROXY passes a variable of this machine."],
  ["--pod NAME", "refused", networks],
  ["--replace", "refused", noNames],
  ["--rmi", "refused", "`bough rmi IMAGE` removes an image."],
  ["--rootfs", "refused", "`bough images import` makes an image of an archive; then run that."],
  ["--systemd MODE", "refused", "A command starts no init system."],
  ["--tls-verify", "refused", "`bough images import` takes it."],
  ["--tz ZONE", "refused", "-e TZ=ZONE sets the time zone."],
  ["--umask MASK", "refused", "Write: bough run --entrypoint sh IMAGE -c 'umask MASK; COMMAND'"],
  ["--uidmap MAP", "refused", namespaces],
  ["--gidmap MAP", "refused", namespaces],
];

export const foreignRunOptions = foreignOptions(dockerRun, podmanRun);
