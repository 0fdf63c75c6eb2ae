package localsocket

// Dial is dial.
var Dial = dial
