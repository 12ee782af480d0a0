/**
 * A Debian root with Wine, and in it the directory of a Windows machine (`prefix`). Made once (about a minute, 700 MB), and never
 * changed: each test writes to a layer of its own above it.
 */
import { findRoot } from "../support/kept-root.ts";

/** The directory of the Windows machine in the root. */
export const prefix = "/windows";

/** Wine's variables: no messages of its own and of its libraries, and names of files in UTF-8. */
export const wineVariables = [
  "HOME=/root",
  `WINEPREFIX=${prefix}`,
  "WINEDEBUG=-all",
  "LANG=C.UTF-8",
  "XDG_RUNTIME_DIR=/tmp",
];

const libraries = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows";

/** Large files that no program of a terminal needs. */
const leftOut = [
  ..."d2d1* d3d* dwrite* ieframe* jscript* mshtml* msi.dll msvcp* msvcr[0-9]* msxml* opengl* wined3d* winedbg* x3d* xapo* xaudio* *.msstyles"
    .split(" ")
    .map((name) => `${libraries}/${name}`),
  "/usr/lib/x86_64-linux-gnu/wine/i386-windows/*",
  ...["doc", "info", "locale", "man"].map((name) => `/usr/share/${name}/*`),
];

/** Starts Wine once, which makes the directory, and makes the libraries in it links to those of the package. */
const makeMachine = `
  ${wineVariables.join(" ")} /usr/lib/wine/wine64 wineboot --init
  ${wineVariables.join(" ")} /usr/lib/wine/wineserver64 --wait
  cd ${prefix}/drive_c/windows/system32
  for library in ${libraries}/*; do
    name=$(basename "$library")
    if cmp --silent "$library" "$name"; then ln --force "$library" "$name"; fi
  done
  rm -rf ${prefix}/drive_c/windows/syswow64`;

/** Returns the root's path. */
export function findWineRoot(): Promise<string> {
  return findRoot({
    name: "wine",
    // Wine of Debian 12 lacks a library that Bun needs, and can't remove directories.
    suite: "trixie",
    options: [
      "--variant=minbase",
      "--include=wine64",
      "--dpkgopt=force-unsafe-io",
      ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
      "--skip=output/dev",
      `--customize-hook=chroot "$1" sh -c '${makeMachine}'`,
    ],
  });
}

// `scripts/test` makes it, since that takes longer than a test may.
if (import.meta.main) await findWineRoot();
