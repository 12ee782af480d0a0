/** How the words begin under which the entries of unpacked archives are remembered. */
export const unpackedWords = "unpacked";
