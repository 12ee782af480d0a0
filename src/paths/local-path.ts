/** Paths of this machine in arguments that have other parts, too. */

/** Beginnings of paths with a drive. On other systems than Windows `C:/x` is a directory called `C` and a path in an image. */
const drives = { win32: /^[A-Za-z]:[\\/]/, other: /^[A-Za-z]:\\/ };

/** Returns the place of the first colon that is not a drive's; -1 if there is none. */
export function colonAfterPath(text: string, platform: NodeJS.Platform = process.platform): number {
  return text.indexOf(":", (platform === "win32" ? drives.win32 : drives.other).test(text) ? 2 : 0);
}

/** Returns true for an argument in the form of a path, which is therefore not a name: `/x`, `./x`, `../x`; on Windows also `C:\x`, `.\x` and `\\host\x`. */
export function isWrittenAsPath(text: string, platform: NodeJS.Platform = process.platform): boolean {
  return platform === "win32"
    ? drives.win32.test(text) || /^\.{0,2}[\\/]/.test(text)
    : /^\.{0,2}\//.test(text);
}
