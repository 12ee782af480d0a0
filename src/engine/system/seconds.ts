/** Returns `1 second`, `10 seconds`. */
export function nameSeconds(seconds: number): string {
  return `${seconds} ${seconds === 1 ? "second" : "seconds"}`;
}
