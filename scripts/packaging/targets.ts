/** The machines that a release is for. */
export interface Target {
  /** The name in file names, for which `scripts/install.sh` looks. */
  name: string;
  /** The value of `bun build --target`. */
  bunTarget: string;
  /** The npm package with Bun's runtime for the target. */
  runtimePackage: string;
  format: ExecutableFormat;
  archive: "tar.gz" | "zip";
}

export interface ExecutableFormat {
  container: "ELF" | "Mach-O" | "PE";
  architecture: "x64" | "arm64";
  /** ELF only: the loader, which differs between glibc and musl. */
  loader?: string;
}

export const targets: readonly Target[] = [
  linux("x64", "glibc", "/lib64/ld-linux-x86-64.so.2"),
  linux("arm64", "glibc", "/lib/ld-linux-aarch64.so.1"),
  linux("x64", "musl", "/lib/ld-musl-x86_64.so.1"),
  linux("arm64", "musl", "/lib/ld-musl-aarch64.so.1"),
  macos("x64"),
  macos("arm64"),
  {
    name: "windows-x64",
    bunTarget: "bun-windows-x64",
    runtimePackage: "@oven/bun-windows-x64",
    format: { container: "PE", architecture: "x64" },
    archive: "zip",
  },
];

/** The executable's name on its system. */
export function executableName({ format }: Target): string {
  return format.container === "PE" ? "bough.exe" : "bough";
}

function linux(architecture: "x64" | "arm64", library: "glibc" | "musl", loader: string): Target {
  const suffix = library === "musl" ? "-musl" : "";
  return {
    name: `linux-${architecture}${suffix}`,
    bunTarget: `bun-linux-${architecture}${suffix}`,
    runtimePackage: `@oven/bun-linux-${packageArchitecture(architecture)}${suffix}`,
    format: { container: "ELF", architecture, loader },
    archive: "tar.gz",
  };
}

function macos(architecture: "x64" | "arm64"): Target {
  return {
    name: `macos-${architecture}`,
    bunTarget: `bun-darwin-${architecture}`,
    runtimePackage: `@oven/bun-darwin-${packageArchitecture(architecture)}`,
    format: { container: "Mach-O", architecture },
    archive: "tar.gz",
  };
}

function packageArchitecture(architecture: "x64" | "arm64"): string {
  return architecture === "arm64" ? "aarch64" : architecture;
}
