/** Maximum timeout of a command, in seconds. */
export const maxTimeout = 86_400;
